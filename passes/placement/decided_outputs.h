#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "passes/placement/plan.h"

namespace strata {

/// The placement that `plan` decides on each axis of `value`, a result of a call in forward that
/// leaves the module of the call. Empty: it decides nothing.
std::vector<std::optional<Placement>> DecidedOutput(Graph& graph, const PlacementPlan& plan,
                                                    ValueId value);

/// `placements` with what is decided in their place.
Placements WithDecided(Placements placements, const std::vector<std::optional<Placement>>& decided);

}  // namespace strata

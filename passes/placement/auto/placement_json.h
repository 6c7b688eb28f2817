#pragma once
#include <string>

#include "ir/graph.h"
#include "passes/placement/auto/auto_plan.h"

namespace strata {

/// `strata.place/1` (docs/json.md): mesh, the placements of every node with the cost of its
/// operands, and the parts of the whole.
std::string PlacementJson(const Graph& graph, const AutoPlacement& placement,
                          const CostModel& model);

}  // namespace strata

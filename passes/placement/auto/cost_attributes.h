#pragma once
#include <string_view>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/auto/auto_plan.h"

namespace strata {

/// Modelled time of a node on a rank, in µs with three digits. Of what costs nothing there is none.
inline constexpr std::string_view kComputeAttribute = "place.compute_us";
inline constexpr std::string_view kCommunicationAttribute = "place.communication_us";
/// "S(0)R -> S(0): +12.345 µs": the strategy of a call or parameter that costs the least more
/// while its neighbours keep theirs; so its price is at most that.
inline constexpr std::string_view kInsteadAttribute = "place.instead";

/// Writes these attributes to the nodes of `graph`, which `place` placed as `placement`, found for
/// the graph before, says. Nodes that `place` made have costs only. Errors: an operator without a
/// rule.
Status WriteCostAttributes(Graph& graph, const AutoPlacement& placement, const CostModel& model);

}  // namespace strata

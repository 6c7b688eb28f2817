#pragma once
#include <string>

#include "ir/graph.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/costs/pipeline_cost.h"

namespace strata {

/// `strata.place/1` (docs/json.md): mesh, the placements of every node with the cost of its
/// operands, and the parts of the whole. `pipeline`: of a step in stages, of which `model` has the
/// mesh of one and `graph` is that of a microbatch; null: none.
std::string PlacementJson(const Graph& graph, const AutoPlacement& placement,
                          const CostModel& model, const PipelineCost* pipeline = nullptr);

}  // namespace strata

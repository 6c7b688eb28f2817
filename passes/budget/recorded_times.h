#pragma once
#include "ir/graph.h"
#include "passes/budget/memory_costs.h"
#include "passes/core/node_times.h"

namespace strata {

/// Nodes with a recorded time cost that. Others cost what the model says, times the ratio of
/// recorded and modelled times over all nodes that have both, so that both kinds compare.
void UseTimes(const NodeTimes& times, const Graph& graph, MemoryCosts& costs);

}  // namespace strata

#pragma once
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/core/node_times.h"
#include "passes/placement/costs/topology.h"

namespace strata {

/// How many times as long as modelled the nodes of a step take. Without nodes: all as modelled.
struct ComputeScales {
  std::map<std::string, double, std::less<>> of_nodes;  ///< by name
  double of_others = 1;

  double Of(const Graph& graph, NodeId node) const;
};

/// The scales of a graph that was not placed, of which one rank took `times`. Nodes without a time
/// take the ratio of all recorded to all modelled times, so that both kinds compare.
///
/// Errors: no node has a recorded time; an operator without a rule.
Result<ComputeScales> ScalesOf(Graph& graph, const NodeTimes& times, const Topology& topology);

}  // namespace strata

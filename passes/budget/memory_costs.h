#pragma once
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/costs/topology.h"

namespace strata {

/// What giving up memory costs, in µs.
struct MemoryCosts {
  IdVector<NodeId, double> recompute_us;  ///< computing it once more; 0 of views
  /// Of a copy to the host and back, per byte: the part that computation does not hide.
  double offload_us_per_byte = 0;

  double RecomputeUs(NodeId node) const { return recompute_us[node]; }
};

/// The roofline of `topology` (passes/simulate/node_cost.h) for nodes, collectives included. A byte
/// crosses the link to the host twice, at a quarter of the speed of the device's memory on a CPU
/// and at 1/64 of it on a GPU; half of that is hidden. Errors: those of NodeCost.
Result<MemoryCosts> ModelledCosts(const Graph& graph, const Topology& topology);

/// The topology whose device the graph computes on, "h100" for a GPU, else "cpu".
std::string_view TopologyOf(const Graph& graph);

}  // namespace strata

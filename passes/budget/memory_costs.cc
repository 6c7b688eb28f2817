#include "passes/budget/memory_costs.h"

#include <string_view>
#include <utility>

#include "ir/by_node.h"
#include "ir/module.h"
#include "passes/core/collectives.h"
#include "passes/simulate/node_cost.h"

namespace strata {

Result<MemoryCosts> ModelledCosts(const Graph& graph, const Topology& topology) {
  STRATA_TRY(const NodeCost model, NodeCost::Make(topology, graph));
  MemoryCosts costs{.recompute_us = ByNode<double>(graph)};
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    double& us = costs.recompute_us[node];
    if (CollectiveOf(graph, node)) {
      STRATA_TRY(us, model.CollectiveUs(graph, node));
    } else {
      us = model.ComputeUs(graph, node);
    }
  }
  const bool is_cpu = TopologyOf(graph) == "cpu";
  const double bytes_per_us = topology.device.bytes_per_us / (is_cpu ? 4 : 64);
  costs.offload_us_per_byte = 1.0 / bytes_per_us;  // twice, half of it hidden
  return costs;
}

std::string_view TopologyOf(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const TypeId type = graph.value(graph.result(node, i)).type;
      if (!type.valid()) continue;
      const StrId device = graph.module().types()[type].device;
      if (device.valid() && graph.module().str(device).starts_with("cuda")) return "h100";
    }
  }
  return "cpu";
}

}  // namespace strata

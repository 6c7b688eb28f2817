#include "passes/placement/costs/compute_scales.h"

#include <string_view>

#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/mesh.h"

namespace strata {

double ComputeScales::Of(const Graph& graph, NodeId node) const {
  if (of_nodes.empty()) return of_others;
  const auto found = of_nodes.find(graph.name(node));
  return found == of_nodes.end() ? of_others : found->second;
}

Result<ComputeScales> ScalesOf(Graph& graph, const NodeTimes& times, const Topology& topology) {
  STRATA_TRY(const CostModel one_rank, CostModel::Make(topology, Mesh()));
  STRATA_TRY(const PlacedCost cost, CostOfPlaced(graph, one_rank));
  ComputeScales scales;
  double recorded = 0, modelled = 0;
  for (const PlacedCost::Item& item : cost.items) {
    const std::string_view name = graph.name(item.node);
    const auto time = times.find(name);
    const bool is_call = graph.node(item.node).kind == NodeKind::kCall;
    if (!is_call || time == times.end() || item.compute_us <= 0) continue;
    scales.of_nodes.emplace(name, time->second / item.compute_us);
    recorded += time->second;
    modelled += item.compute_us;
  }
  if (recorded <= 0) {
    return Error(
        "no node of the step has a time in the profile: record one rank without fuse, by strata "
        "train CONFIG --passes dce,canonicalize --profile 3 --trace T, and write the file with "
        "strata profile 'T#graph=step' --json");
  }
  scales.of_others = recorded / modelled;
  return scales;
}

}  // namespace strata

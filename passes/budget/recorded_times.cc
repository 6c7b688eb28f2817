#include "passes/budget/recorded_times.h"

namespace strata {

void UseTimes(const NodeTimes& times, const Graph& graph, MemoryCosts& costs) {
  double recorded = 0, modelled = 0;
  for (const NodeId node : graph.nodes()) {
    const auto time = times.find(graph.name(node));
    if (time == times.end() || costs.recompute_us[node] <= 0) continue;
    recorded += time->second;
    modelled += costs.recompute_us[node];
  }
  if (recorded <= 0 || modelled <= 0) return;
  const double scale = recorded / modelled;
  for (const NodeId node : graph.nodes()) {
    const auto time = times.find(graph.name(node));
    double& us = costs.recompute_us[node];
    us = time != times.end() && us > 0 ? time->second : us * scale;
  }
  costs.offload_us_per_byte *= scale;
}

}  // namespace strata

#include "passes/budget/budget.h"

#include <utility>

#include "passes/budget/live_peak.h"
#include "passes/budget/recorded_times.h"
#include "passes/memory/foreign_phases.h"
#include "passes/memory/tag_memory.h"

namespace strata {

Result<MemoryCosts> CostsOf(const Graph& graph, const std::string& topology) {
  STRATA_TRY(const Topology device,
             Topology::Load(topology.empty() ? std::string(TopologyOf(graph)) : topology));
  return ModelledCosts(graph, device);
}

BudgetSearch SearchOf(const Module& module, GraphId graph, const MemoryCosts& costs,
                      const Budget::Options& options, PeakOracle oracle) {
  if (!oracle) {
    oracle = [](Module& changed, GraphId id) -> Result<int64_t> {
      return LivePeakBytes(changed.graph(id));
    };
  }
  return BudgetSearch(module, graph, costs,
                      {.offload = options.offload,
                       .copies = {.prefetch = options.prefetch, .defer = options.defer}},
                      std::move(oracle));
}

Result<Changed> Budget::Run(Module& module) {
  if (options_.bytes <= 0) return Error("option 'bytes' must be above 0, give the peak of a step");
  NodeTimes times;
  if (!options_.times.empty()) {
    STRATA_TRY(times, ReadProfile(options_.times));
  }
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    if (!HasBackward(graph)) continue;
    CompleteBackward(graph);
    STRATA_TRY(MemoryCosts costs, CostsOf(graph, options_.topology));
    UseTimes(times, graph, costs);
    STRATA_TRY(const BudgetedPlan plan,
               SearchOf(module, id, costs, options_, oracle_).Fit(options_.bytes));
    ApplyMemoryPolicy(graph, [&](const Graph&, NodeId node) { return plan.tags[node]; });
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata

#include "passes/budget/memory_front.h"

#include <utility>

#include <fmt/format.h>

#include "passes/budget/budget.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/tags.h"

namespace strata {

Result<MemoryFront> MemoryFrontOf(const Module& module, GraphId id,
                                  const MemoryFrontOptions& options) {
  const Graph& graph = module.graph(id);
  for (const NodeId node : graph.nodes()) {
    if (!graph.attribute(node, kRecomputedFromAttribute).empty() || IsTransfer(graph, node)) {
      return Error("a plan was applied already: graph {}: node {}: name the graph before it",
                   graph.name_text(), graph.name(node));
    }
  }
  STRATA_TRY(MemoryCosts costs, CostsOf(graph, options.topology));
  UseTimes(options.times, graph, costs);
  Budget::Options budget;
  budget.offload = options.offload;
  STRATA_TRY(std::vector<BudgetedPlan> plans, SearchOf(module, id, costs, budget).Front());
  return MemoryFront{.plans = std::move(plans), .is_profiled = !options.times.empty()};
}

std::string PassesOf(const BudgetedPlan& plan) {
  return fmt::format("budget{{bytes={}}},recompute,offload", plan.peak_bytes);
}

}  // namespace strata

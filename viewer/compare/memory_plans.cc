#include "viewer/compare/memory_plans.h"

#include <fmt/format.h>

#include "base/unicode.h"
#include "passes/budget/memory_front.h"

namespace strata::viewer {
namespace {

NodeTimes TimesOf(const Comparison& comparison, const Graph& graph) {
  NodeTimes times;
  if (!comparison.has_measures()) return times;
  for (const NodeId node : graph.nodes()) {
    const auto found =
        comparison.input().measures->find(static_cast<uint64_t>(graph.node(node).stable_id));
    if (found != comparison.input().measures->end())
      times[std::string(graph.name(node))] = static_cast<double>(found->second.time_ns) / 1e3;
  }
  return times;
}

}  // namespace

MemoryPlans MemoryPlansOf(const Comparison& comparison) {
  const Comparison::Input& input = comparison.input();
  const Graph& graph = input.after->graph(input.after_graph);
  MemoryPlans made;
  const Result<MemoryFront> front =
      MemoryFrontOf(*input.after, input.after_graph,
                    {.offload = true, .topology = "", .times = TimesOf(comparison, graph)});
  if (!front) {
    made.words = VisibleLines(front.error().message());
    return made;
  }
  for (const BudgetedPlan& plan : front->plans)
    made.plans.push_back({.peak_bytes = static_cast<double>(plan.peak_bytes),
                          .added_us = plan.us,
                          .recomputed = plan.num_recomputed,
                          .offloaded = plan.num_offloaded,
                          .passes = PassesOf(plan)});
  if (made.plans.size() < 2) {
    made.words = "Nothing that forward saves for backward could be recomputed or offloaded.";
    made.plans.clear();
    return made;
  }
  made.words = fmt::format("Plans of the pass budget. Peaks beside inputs, added time as {}.",
                           front->is_profiled ? "recorded" : "modelled");
  return made;
}

}  // namespace strata::viewer

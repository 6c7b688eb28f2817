#include "passes/placement/auto/constraints.h"

#include <algorithm>

#include "passes/placement/decided_outputs.h"
#include "passes/placement/inputs.h"

namespace strata {
namespace {

bool Fits(const CallStrategy& strategy, const AxisStrategy& decided, const ShardingRule& rule,
          size_t axis) {
  if (strategy.operands.size() != decided.operands.size() ||
      strategy.results.size() != decided.results.size())
    return false;
  for (size_t i = 0; i < strategy.operands.size(); ++i) {
    const bool is_ignored = std::ranges::count(rule.ignored, static_cast<int>(i)) != 0;
    if (!is_ignored && !(strategy.operands[i][axis] == decided.operands[i])) return false;
  }
  for (size_t i = 0; i < strategy.results.size(); ++i)
    if (!(strategy.results[i][axis] == decided.results[i])) return false;
  return true;
}

}  // namespace

std::string DecidedText(Graph& graph, const PlacementPlan& plan, NodeId node, const NodeKey* key) {
  Module& module = graph.module();
  std::string text;
  const auto add = [&](const std::optional<Placement>& placement) {
    text += placement ? PlacementsText(module, {*placement}) : "-";
  };
  const size_t axes = plan.mesh().axes().size();
  if (graph.node(node).kind == NodeKind::kPlaceholder) {
    if (KindOf(graph, node) != PlacedInput::kParameter) return text;
    for (size_t axis = 0; axis < axes; ++axis)
      add(plan.Stored(module, graph.attribute(node, "fqn"), axis));
    return text;
  }
  for (size_t axis = 0; key != nullptr && axis < axes; ++axis) {
    const auto strategy = plan.Strategy(module, *key, axis);
    if (!strategy) continue;
    text += PlacementsText(module, strategy->operands) + ">" +
            PlacementsText(module, strategy->results) + ";";
  }
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    for (const auto& decided : DecidedOutput(graph, plan, graph.result(node, i)))
      add(decided);
  return text;
}

bool IsHeldAs(Module& module, const PlacementPlan& plan, std::string_view parameter,
              const Placements& placements) {
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    const auto decided = plan.Stored(module, parameter, axis);
    if (decided && !(*decided == placements[axis])) return false;
  }
  return true;
}

Status KeepDecided(Module& module, const PlacementPlan& plan, const NodeKey& key,
                   const ShardingRule& rule, std::vector<CallStrategy>& strategies) {
  for (size_t axis = 0; axis < plan.mesh().axes().size(); ++axis) {
    const auto decided = plan.Strategy(module, key, axis);
    if (!decided) continue;
    std::erase_if(strategies, [&](const CallStrategy& strategy) {
      return !Fits(strategy, *decided, rule, axis);
    });
    if (strategies.empty()) {
      return Error(
          "no such strategy: {} on axis {}: the sharding rule of {} does not allow it: "
          "correct the entry, or remove it",
          plan.WhereNode(key), plan.mesh().axes()[axis].name, key.op);
    }
  }
  return Ok();
}

}  // namespace strata

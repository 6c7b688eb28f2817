#include "passes/placement/call_rules.h"

#include <ranges>
#include <vector>

#include "passes/core/written_memory.h"

namespace strata {
namespace {

/// Operands that a call writes. A call without a rule writes nothing: it cannot be placed.
std::vector<ValueId> WrittenBy(Graph& graph, NodeId call) {
  const auto rule = ShardingRuleOf(graph, call);
  if (!rule) return {};
  const std::vector<ValueId> operands = graph.operands(call);
  std::vector<ValueId> written;
  for (const int operand : rule->written)
    written.push_back(operands[static_cast<size_t>(operand)]);
  return written;
}

bool ViewsAny(const Graph& graph, NodeId node, const std::set<ValueId>& owners) {
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const ValueId result = graph.result(node, i);
    if (graph.value(result).alias_of.valid() && owners.contains(OwnerOf(graph, result)))
      return true;
  }
  return false;
}

}  // namespace

CallRules::CallRules(Graph& graph) : graph_(graph) {
  std::set<ValueId> written;  // by nodes after the one that is looked at
  for (const NodeId node : graph.nodes().Snapshot() | std::views::reverse) {
    if (Mutates(graph, node)) {
      for (const ValueId value : WrittenBy(graph, node))
        written.insert(OwnerOf(graph, value));
    } else if (!written.empty() && ViewsAny(graph, node, written)) {
      views_written_later_.insert(node);
    }
  }
}

Result<ShardingRule> CallRules::Of(NodeId call) const {
  STRATA_TRY(ShardingRule rule, ShardingRuleOf(graph_, call));
  if (views_written_later_.contains(call)) rule.written.push_back(0);
  return rule;
}

}  // namespace strata

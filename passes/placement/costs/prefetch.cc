#include "passes/placement/costs/prefetch.h"

#include <algorithm>
#include <vector>

#include "passes/placement/inputs.h"

namespace strata {
namespace {

bool IsMadeOf(const Graph& graph, NodeId call, const std::set<NodeId>& nodes) {
  const std::vector<ValueId> operands = graph.operands(call);
  return !operands.empty() && std::ranges::all_of(operands, [&](ValueId operand) {
    return nodes.contains(graph.value(operand).def);
  });
}

/// Every reader is one of `nodes`, or the output, which returns it as one of `gradients`.
bool IsReadBy(const Graph& graph, NodeId call, const std::set<NodeId>& nodes,
              const std::set<ValueId>& gradients) {
  bool is_read = false;
  for (size_t i = 0; i < graph.node(call).num_results; ++i) {
    const ValueId result = graph.result(call, i);
    for (const Use use : graph.uses(result)) {
      is_read = true;
      const bool is_gradient = use.user == graph.output() && gradients.contains(result);
      if (!is_gradient && !nodes.contains(use.user)) return false;
    }
  }
  return is_read;
}

}  // namespace

Prefetchable PrefetchableOf(const Graph& graph) {
  Prefetchable found;
  std::vector<NodeId> calls;
  size_t parameters = 0;
  for (const NodeId node : graph.nodes()) {
    const NodeKind kind = graph.node(node).kind;
    if (kind == NodeKind::kPlaceholder && KindOf(graph, node) == PlacedInput::kParameter) {
      ++parameters;
      found.from_parameters.insert(node);
    } else if (kind == NodeKind::kCall) {
      calls.push_back(node);
      if (IsMadeOf(graph, node, found.from_parameters)) found.from_parameters.insert(node);
    }
  }
  std::set<ValueId> gradients;
  const std::vector<ValueId> outputs = graph.operands(graph.output());
  for (size_t i = 1; i < outputs.size() && i <= parameters; ++i)
    gradients.insert(outputs[i]);
  for (size_t i = calls.size(); i-- > 0;)
    if (graph.operands(calls[i]).size() == 1 &&
        IsReadBy(graph, calls[i], found.to_gradients, gradients))
      found.to_gradients.insert(calls[i]);
  return found;
}

}  // namespace strata

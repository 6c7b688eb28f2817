#include "passes/core/viewed_operands.h"

#include <algorithm>
#include <vector>

#include "passes/core/written_memory.h"

namespace strata {

ViewedOperands::ViewedOperands(const Graph& graph) : graph_(graph) {
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId result = graph.result(node, i);
      const ValueId owner = graph.value(result).alias_of;
      if (!owner.valid()) continue;
      const std::vector<ValueId> operands = graph.operands(node);
      const auto viewed = std::ranges::find_if(
          operands, [&](ValueId operand) { return OwnerOf(graph, operand) == owner; });
      if (viewed != operands.end()) operand_[result] = viewed - operands.begin();
    }
  }
}

void ViewedOperands::Copy(ValueId from, ValueId to) {
  const auto found = operand_.find(from);
  if (found == operand_.end()) return;
  const auto operand = found->second;
  operand_[to] = operand;
}

void ViewedOperands::Update(Rewriter& rewriter) const {
  for (const NodeId node : graph_.nodes()) {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const auto found = operand_.find(graph_.result(node, i));
      if (found == operand_.end()) continue;
      const ValueId viewed = graph_.operands(node)[static_cast<size_t>(found->second)];
      const ValueId owner = OwnerOf(graph_, viewed);
      if (graph_.value(found->first).alias_of != owner) rewriter.SetAlias(found->first, owner);
    }
  }
}

}  // namespace strata

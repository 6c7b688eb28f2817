#include "passes/core/written_memory.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/flagged_writes.h"
#include "ir/fused_op.h"
#include "ir/ops.h"
#include "ir/taken_elements.h"

namespace strata {
namespace {

/// Operators whose results lie in their first operand, though their schemas do not say so.
bool SharesUnsafely(std::string_view op) {
  constexpr std::string_view kOps[] = {"aten._unsafe_view", "aten.lift", "aten.unsafe_chunk",
                                       "aten.unsafe_split", "aten.unsafe_split_with_sizes"};
  return std::ranges::any_of(kOps, [&](std::string_view base) { return IsOverloadOf(op, base); });
}

/// The operator that a node calls, of a method ATen's: `aten.view` of `x.view(4)`. Empty: none.
std::string OperatorOf(const Graph& graph, NodeId node) {
  const NodeKind kind = graph.node(node).kind;
  if (kind == NodeKind::kCallMethod) return fmt::format("aten.{}", graph.op(node));
  return kind == NodeKind::kCall ? std::string(graph.op(node)) : std::string();
}

}  // namespace

ValueId SharedOperand(const Graph& graph, NodeId node) {
  const std::string op = OperatorOf(graph, node);
  if (op.empty()) return {};
  if (const Arg* out = graph.FindKwarg(node, "out"); out != nullptr && out->is_value())
    return out->value();
  const std::string_view name = BaseName(op);
  const OpTraits traits = TraitsOf(op);
  const bool is_in_place = (name.ends_with('_') && !name.ends_with("__")) ||
                           (traits.mutates && op.starts_with("_operator.")) ||  // `x += y`
                           WritesResultByFlag(graph, node);
  const bool is_part = op == kGetItemOp || op == "getattr";  // `x[0]`, `x.T`
  if (!traits.view && !is_in_place && !is_part && !SharesUnsafely(op)) return {};
  const std::vector<ValueId> operands = graph.operands(node);
  return operands.empty() ? ValueId() : operands[0];
}

ValueId OwnerOf(const Graph& graph, ValueId value) {
  while (true) {
    ValueId owner = graph.value(value).alias_of;
    if (!owner.valid() && graph.is_foreign()) owner = SharedOperand(graph, graph.value(value).def);
    if (!owner.valid()) return value;
    value = owner;
  }
}

bool Mutates(const Graph& graph, NodeId node) {
  if (graph.node(node).kind == NodeKind::kCallMethod)
    return TraitsOf(OperatorOf(graph, node)).mutates;
  return TraitsOf(graph, node).mutates;
}

std::set<ValueId> WrittenMemory(const Graph& graph) {
  std::set<ValueId> written;
  for (const NodeId node : graph.nodes()) {
    if (Mutates(graph, node)) {
      graph.ForEachOperand(node, [&](ValueId value) { written.insert(OwnerOf(graph, value)); });
    } else if (graph.node(node).kind == NodeKind::kCall && graph.op(node) == kFusedOp) {
      // Results that lie in operands are written there.
      for (size_t i = 0; i < graph.node(node).num_results; ++i) {
        const ValueId result = graph.result(node, i);
        if (graph.value(result).alias_of.valid()) written.insert(OwnerOf(graph, result));
      }
    }
  }
  return written;
}

}  // namespace strata

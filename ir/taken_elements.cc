#include "ir/taken_elements.h"

#include <algorithm>
#include <span>

namespace strata {
namespace {

constexpr int64_t kMaxElements = 4096;  // more than any operator returns

/// The index of the element of `tuple` that `node` is; none: it is not one of its elements.
std::optional<int64_t> IndexTaken(const Graph& graph, NodeId node, ValueId tuple) {
  const std::span<const Arg> args = graph.args(node);
  const bool takes = graph.node(node).kind == NodeKind::kCall && graph.op(node) == kGetItemOp &&
                     args.size() == 2 && args[0].is_value() && args[0].value() == tuple &&
                     args[1].kind() == ArgKind::kInt;
  if (!takes || args[1].as_int() < 0 || args[1].as_int() >= kMaxElements) return std::nullopt;
  return args[1].as_int();
}

bool MayReturnTuple(const Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  return n.kind == NodeKind::kCall && n.num_results == 1 && !n.returns_tuple &&
         !graph.value(graph.result(node)).type.valid() && graph.op(node) != kGetItemOp;
}

}  // namespace

std::vector<TypeId> TypesOfTakenElements(const Graph& graph, NodeId call) {
  std::vector<TypeId> types;
  if (!MayReturnTuple(graph, call)) return types;
  for (const Use& use : graph.uses(graph.result(call))) {
    const std::optional<int64_t> index = IndexTaken(graph, use.user, graph.result(call));
    if (!index) return {};
    types.resize(std::max(types.size(), static_cast<size_t>(*index) + 1));
    types[static_cast<size_t>(*index)] = graph.value(graph.result(use.user)).type;
  }
  return types;
}

std::optional<TakenElement> ElementTakenBy(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || graph.op(node) != kGetItemOp) return {};
  const std::span<const Arg> args = graph.args(node);
  if (args.empty() || !args[0].is_value()) return {};
  const NodeId call = graph.value(args[0].value()).def;
  const std::optional<int64_t> index = IndexTaken(graph, node, args[0].value());
  if (!index || TypesOfTakenElements(graph, call).empty()) return {};
  return TakenElement{.call = call, .index = *index};
}

}  // namespace strata

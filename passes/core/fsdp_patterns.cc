#include "passes/core/fsdp_patterns.h"

#include <algorithm>

#include "ir/ops.h"
#include "passes/core/collectives.h"

namespace strata {
namespace {

/// The next node of a chain, or none.
NodeId NextOf(const Graph& graph, NodeId node) {
  const NodeId user = OnlyUserOf(graph, node);
  if (!user.valid() || graph.node(user).kind != NodeKind::kCall) return {};
  return OnlyInputOf(graph, user).valid() ? user : NodeId{};
}

/// The `cat` that joins all parts of the split that is the next node; none: there is no such.
NodeId CatAfterSplit(const Graph& graph, NodeId node) {
  const NodeId user = OnlyUserOf(graph, node);
  const bool is_split = user.valid() && BaseName(graph.op(user)).starts_with("split") &&
                        graph.node(user).returns_tuple;
  if (!is_split) return {};
  const NodeId cat = OnlyUserOf(graph, user);
  if (!cat.valid() || BaseName(graph.op(cat)) != "cat" || OnlyInputOf(graph, cat) != user)
    return {};
  for (size_t i = 0; i < graph.node(user).num_results; ++i)
    if (graph.value(graph.result(user, i)).num_uses > 1) return {};
  return cat;
}

/// The last node before the chain ends in a computation.
NodeId EndOfChain(const Graph& graph, NodeId node) {
  while (true) {
    NodeId next = CatAfterSplit(graph, node);
    if (!next.valid()) next = NextOf(graph, node);
    if (!next.valid()) return node;
    node = next;
  }
}

ValueId LastNonView(const Graph& graph, NodeId node) {
  while (TraitsOf(graph.op(node)).view && InputsOf(graph, node).size() == 1) {
    const std::vector<ValueId> operands = graph.operands(node);
    if (graph.node(graph.value(operands[0]).def).returns_tuple) return operands[0];
    node = graph.value(operands[0]).def;
  }
  return graph.result(node);
}

}  // namespace

NodeId LastAllGatherFrom(const Graph& graph, NodeId node) {
  NodeId last;
  for (; node.valid(); node = NextOf(graph, node))
    if (IsCollective(graph, node, CollectiveKind::kAllGather)) last = node;
  return last;
}

Result<ValueId> UnshardOutput(const Graph& graph, NodeId gather) {
  const std::vector<NodeId> users = UsersOf(graph, gather);
  if (users.size() != 1) {
    return Error("an all-gather must have one user, its wait: graph {}: {} has {}",
                 graph.name_text(), graph.name(gather), users.size());
  }
  if (!IsWait(graph, users[0])) {
    return Error("an all-gather must be read by its wait: graph {}: {} is read by {} ({})",
                 graph.name_text(), graph.name(gather), graph.name(users[0]), graph.op(users[0]));
  }
  return LastNonView(graph, EndOfChain(graph, users[0]));
}

Result<std::vector<ValueId>> UnshardOutputs(const Graph& graph, NodeId placeholder) {
  std::vector<ValueId> outputs;
  const std::vector<NodeId> users = UsersOf(graph, placeholder);
  for (const NodeId user : users) {
    const bool continues =
        graph.node(user).kind == NodeKind::kCall && OnlyInputOf(graph, user).valid();
    if (!continues) continue;
    const NodeId gather = LastAllGatherFrom(graph, user);
    if (!gather.valid()) continue;
    STRATA_TRY(const ValueId output, UnshardOutput(graph, gather));
    if (std::ranges::find(outputs, output) == outputs.end()) outputs.push_back(output);
  }
  return outputs;
}

ValueId ReductionInput(const Graph& graph, ValueId value) {
  ValueId found;
  NodeId node = graph.value(value).def;
  while (true) {
    const NodeId input = OnlyInputOf(graph, node);
    if (!input.valid()) return found;
    if (!OnlyUserOf(graph, input).valid()) return found;
    const auto kind = CollectiveOf(graph, node);
    if (kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce)
      found = graph.operands(node)[0];
    node = input;
  }
}

}  // namespace strata

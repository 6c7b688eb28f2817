#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

bool DropWait(Graph& graph, NodeId node) {
  if (!IsWait(graph, node)) return false;
  Rewriter(graph).ReplaceUses(graph.result(node), graph.args(node)[0].value());
  return true;
}

/// What is sent is overwritten between launch and wait.
bool WriteInFlight(Graph& graph, NodeId node) {
  const NodeId wait = CollectiveOf(graph, node) ? OnlyWaitOf(graph, node) : NodeId{};
  const ValueId sent = OperandAt(graph, node, 0);
  if (!wait.valid() || !sent.valid()) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(node);
  CreateLike(rewriter, "aten.mul_.Scalar", {Arg(sent), Arg::Int(2)}, sent, node);
  return true;
}

/// A reduction or gather of a buffer that nothing was written to.
bool SendZeros(Graph& graph, NodeId node) {
  const ValueId sent = CollectiveOf(graph, node) ? OperandAt(graph, node, 0) : ValueId{};
  if (!IsRealTensor(graph, sent)) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  SetArg(rewriter, node, 0,
         Arg(CreateLike(rewriter, "aten.zeros_like.default", {Arg(sent)}, sent, node)));
  return true;
}

/// A value that is read again later is overwritten after its first use.
bool WriteSaved(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  if (!IsRealTensor(graph, value)) return false;
  const std::vector<NodeId> users = UsersOf(graph, node);
  const auto is_call = [&](NodeId user) { return graph.node(user).kind == NodeKind::kCall; };
  if (users.size() < 2 || !is_call(users[0]) || !is_call(users[1])) return false;
  if (TraitsOf(graph.op(users[0])).view || IsWait(graph, users[0])) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(users[0]);
  CreateLike(rewriter, "aten.mul_.Scalar", {Arg(value), Arg::Int(2)}, value, node);
  return true;
}

// To add one: a function above and a line here.
constexpr Mutation kMemoryMutations[] = {
    {"drop-wait",
     "a result of a collective is read before its end",
     DropWait,
     {BugKind::kInFlight}},
    {"write-in-flight",
     "what is sent is overwritten before the end",
     WriteInFlight,
     {BugKind::kInFlight, BugKind::kOverwritten}},
    {"send-zeros",
     "a collective of a buffer of zeros",
     SendZeros,
     {BugKind::kExchanged, BugKind::kMissingOperation, BugKind::kExtraOperation}},
    {"write-saved",
     "a value that is read again is overwritten",
     WriteSaved,
     {BugKind::kOverwritten}},
};

}  // namespace

std::span<const Mutation> MemoryMutations() {
  return kMemoryMutations;
}

}  // namespace strata::prove

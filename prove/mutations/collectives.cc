#include "passes/core/collectives.h"

#include <algorithm>
#include <array>

#include "ir/module.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

bool DropAllReduce(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  if (!wait.valid()) return false;
  Rewriter(graph).ReplaceUses(graph.result(wait), graph.args(node)[0].value());
  return true;
}

bool KeepOwnPart(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kReduceScatter)) return false;
  const Arg args[] = {graph.args(node)[0], Arg::Int(0), graph.args(node).back(),
                      Arg::Int(GroupSizeOf(graph, node))};
  Rewriter rewriter(graph);
  rewriter.SetOp(node, kAxisShardOp);
  rewriter.SetArgs(node, args, {});
  return true;
}

/// A sum over the ranks of `group` of a value, for all that read it.
void SumAgain(Graph& graph, ValueId value, NodeId after, Arg group) {
  const std::vector<Use> uses = UsesOf(graph, value);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(after);
  const Arg sum = Arg::String(graph.module().Intern("sum"));
  const ValueId again = CreateLike(rewriter, kAllReduceOp, {Arg(value), sum, group}, value, after);
  const ValueId done = CreateLike(rewriter, kWaitOp, {Arg(again)}, value, after);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, done);
}

bool ReduceTwice(Graph& graph, NodeId node) {
  const NodeId wait = IsReduction(graph, node) ? OnlyWaitOf(graph, node) : NodeId{};
  if (!wait.valid()) return false;
  SumAgain(graph, graph.result(wait), wait, graph.args(node).back());
  return true;
}

bool ReduceAnything(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  const Mesh mesh = MeshOf(graph);
  if (!IsRealTensor(graph, value) || mesh.num_ranks() < 2) return false;
  const MeshAxis& axis = mesh.axes()[static_cast<size_t>(node.index) % mesh.axes().size()];
  SumAgain(graph, value, node, Arg::String(graph.module().Intern(axis.name)));
  return true;
}

/// A part of a value that all ranks have becomes a part of their sum.
bool ReduceCopies(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisShardOp) return false;
  const auto args = graph.args(node);
  if (args[1].as_int() != 0 || !IsRealTensor(graph, graph.result(node))) return false;
  const ValueId part = graph.result(node);
  const std::vector<Use> uses = UsesOf(graph, part);
  const Arg reduce[] = {args[0], Arg::String(graph.module().Intern("sum")), args[3], args[2]};
  Rewriter rewriter(graph);
  rewriter.SetOp(node, kReduceScatterOp);
  rewriter.SetArgs(node, reduce, {});
  rewriter.SetCursorAfter(node);
  const ValueId done = CreateLike(rewriter, kWaitOp, {Arg(part)}, part, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, done);
  return true;
}

bool SetReduction(Graph& graph, NodeId node, std::string_view reduce) {
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 1, Arg::String(graph.module().Intern(reduce)));
  return true;
}

bool SumOrMean(Graph& graph, NodeId node) {
  const std::string_view reduce = IsReduction(graph, node) ? ReduceOpOf(graph, node) : "";
  if (reduce != "sum" && reduce != "avg") return false;
  return SetReduction(graph, node, reduce == "sum" ? "avg" : "sum");
}

bool SumOrMaximum(Graph& graph, NodeId node) {
  const std::string_view reduce = IsReduction(graph, node) ? ReduceOpOf(graph, node) : "";
  if (reduce.empty()) return false;
  return SetReduction(graph, node, reduce == "max" ? "sum" : "max");
}

/// Another axis, of as many ranks.
bool OtherGroup(Graph& graph, NodeId node) {
  if (!CollectiveOf(graph, node)) return false;
  const Mesh mesh = MeshOf(graph);
  const auto members = mesh.GroupOf(GroupOf(graph, node), 0);
  if (!members) return false;
  for (const MeshAxis& axis : mesh.axes()) {
    const auto others = mesh.GroupOf(axis.name, 0);
    if (!others || *others == *members || others->size() != members->size()) continue;
    Rewriter rewriter(graph);
    SetGroup(rewriter, node, axis.name);
    return true;
  }
  return false;
}

/// One of the axes of a group, or none but one.
bool SmallerGroup(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  const Mesh mesh = MeshOf(graph);
  const auto members = mesh.GroupOf(GroupOf(graph, node), 0);
  if (!members) return false;
  for (const MeshAxis& axis : mesh.axes()) {
    const auto others = mesh.GroupOf(axis.name, 0);
    if (!others || others->size() >= members->size()) continue;
    const bool is_inside = std::ranges::includes(*members, *others);
    if (!is_inside) continue;
    Rewriter rewriter(graph);
    SetGroup(rewriter, node, axis.name);
    return true;
  }
  return false;
}

/// Two collectives, one of which reads the other's result, over each other's ranks.
bool ExchangeGroups(Graph& graph, NodeId node) {
  const NodeId wait = CollectiveOf(graph, node) ? OnlyWaitOf(graph, node) : NodeId{};
  const NodeId next = wait.valid() ? OnlyUserOf(graph, wait) : NodeId{};
  if (!next.valid() || CollectiveOf(graph, next) != CollectiveOf(graph, node)) return false;
  const Arg first = graph.args(node).back(), second = graph.args(next).back();
  if (GroupOf(graph, node) == GroupOf(graph, next)) return false;
  if (GroupSizeOf(graph, node) != GroupSizeOf(graph, next)) return false;
  Rewriter rewriter(graph);
  SetArg(rewriter, node, graph.args(node).size() - 1, second);
  SetArg(rewriter, next, graph.args(next).size() - 1, first);
  return true;
}

/// What is sent is read instead of what is received.
bool SkipExchange(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllToAll)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const ValueId sent = OperandAt(graph, node, 0);
  if (!wait.valid() || !sent.valid() || !SameType(graph, sent, graph.result(wait))) return false;
  Rewriter(graph).ReplaceUses(graph.result(wait), sent);
  return true;
}

/// A gather of copies of the own part.
bool RepeatOwnPart(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllGather)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const ValueId own = OperandAt(graph, node, 0);
  if (!wait.valid() || !own.valid()) return false;
  const std::vector<Arg> copies(static_cast<size_t>(GroupSizeOf(graph, node)), Arg(own));
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(wait);
  const Arg list = rewriter.MakeSpan(ArgKind::kList, copies);
  const ValueId whole = graph.result(wait);
  const ValueId repeated =
      CreateLike(rewriter, "aten.cat.default", {list, Arg::Int(0)}, whole, node);
  rewriter.ReplaceUses(whole, repeated);
  return true;
}

/// A rank counts as if all ranks had what it has.
bool OwnTimesRanks(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const auto members = MeshOf(graph).GroupOf(GroupOf(graph, node), 0);
  if (!wait.valid() || !members || ReduceOpOf(graph, node) != "sum") return false;
  const ValueId own = graph.args(node)[0].value(), sum = graph.result(wait);
  const Arg ranks = Arg::Int(static_cast<int64_t>(members->size()));
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(wait);
  rewriter.ReplaceUses(sum, CreateLike(rewriter, "aten.mul.Scalar", {Arg(own), ranks}, sum, node));
  return true;
}

/// Every rank adds what should be added once.
bool AddBeforeReduce(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const NodeId add = wait.valid() ? OnlyUserOf(graph, wait) : NodeId{};
  if (!add.valid() || graph.op(add) != "aten.add.Tensor") return false;
  const ValueId reduced = graph.result(wait);
  const ValueId a = OperandAt(graph, add, 0), b = OperandAt(graph, add, 1);
  const ValueId other = a == reduced ? b : a;
  if (!other.valid() || other == reduced || !SameType(graph, other, reduced)) return false;
  const std::vector<int32_t> order = OrderOf(graph);
  const auto at = [&](NodeId id) { return order[static_cast<size_t>(id.index)]; };
  if (at(graph.value(other).def) > at(node)) return false;
  const ValueId summand = graph.args(node)[0].value();
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const ValueId early =
      CreateLike(rewriter, "aten.add.Tensor", {Arg(summand), Arg(other)}, reduced, add);
  SetArg(rewriter, node, 0, Arg(early));
  rewriter.ReplaceUses(graph.result(add), reduced);
  return true;
}

/// Of two summands, one is added after the sum over the ranks.
bool ReduceOneSummand(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const NodeId add = graph.value(graph.args(node)[0].value()).def;
  const ValueId a = OperandAt(graph, add, 0), b = OperandAt(graph, add, 1);
  const bool is_sum = graph.op(add) == "aten.add.Tensor" && graph.args(add).size() == 2;
  if (!wait.valid() || !is_sum || !a.valid() || !b.valid()) return false;
  if (!SameType(graph, a, graph.result(wait)) || !SameType(graph, a, b)) return false;
  const ValueId sum = graph.result(wait);
  const std::vector<Use> uses = UsesOf(graph, sum);
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 0, Arg(a));
  rewriter.SetCursorAfter(wait);
  const ValueId late = CreateLike(rewriter, "aten.add.Tensor", {Arg(sum), Arg(b)}, sum, add);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, late);
  return true;
}

/// The function of each rank's summand is summed instead of the function of the sum.
bool FunctionBeforeReduce(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  constexpr std::array<std::string_view, 8> kOps = {
      "aten.pow.Tensor_Scalar",  "aten.sqrt.default", "aten.rsqrt.default", "aten.silu.default",
      "aten.reciprocal.default", "aten.log.default",  "aten.exp.default",   "aten.sigmoid.default"};
  const NodeId wait = OnlyWaitOf(graph, node);
  const NodeId function = wait.valid() ? OnlyUserOf(graph, wait) : NodeId{};
  if (!function.valid() || std::ranges::find(kOps, graph.op(function)) == kOps.end()) return false;
  if (!SameType(graph, graph.result(function), graph.result(wait))) return false;
  const ValueId summand = graph.args(node)[0].value(), sum = graph.result(wait);
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const NodeId early = rewriter.Clone(function);
  SetArg(rewriter, early, 0, Arg(summand));
  SetArg(rewriter, node, 0, Arg(graph.result(early)));
  rewriter.ReplaceUses(graph.result(function), sum);
  return true;
}

// To add one: a function above and a line here.
constexpr Mutation kCollectiveMutations[] = {
    {"drop-all-reduce",
     "each rank keeps its summand",
     DropAllReduce,
     {BugKind::kMissingCollective}},
    {"keep-own-part",
     "a rank's part of its own summand instead of the sum",
     KeepOwnPart,
     {BugKind::kMissingCollective}},
    {"repeat-own-part",
     "a gather of copies of the own part",
     RepeatOwnPart,
     {BugKind::kMissingCollective}},
    {"skip-exchange",
     "what is sent is read instead of what is received",
     SkipExchange,
     {BugKind::kMissingCollective}},
    {"own-times-ranks",
     "as if all ranks had the summand of this one",
     OwnTimesRanks,
     {BugKind::kMissingCollective, BugKind::kFactor}},
    {"reduce-twice", "ranks sum what is a sum already", ReduceTwice, {BugKind::kExtraCollective}},
    {"reduce-copies",
     "a part of a sum of copies instead of a part",
     ReduceCopies,
     {BugKind::kExtraCollective}},
    {"reduce-anything",
     "a sum over an axis where none belongs",
     ReduceAnything,
     {BugKind::kExtraCollective}},
    {"sum-or-mean",
     "a mean instead of a sum, or a sum instead of a mean",
     SumOrMean,
     {BugKind::kWrongReduction}},
    {"sum-or-maximum",
     "a maximum instead of a sum, or a sum instead of a maximum",
     SumOrMaximum,
     {BugKind::kWrongReduction}},
    {"other-group",
     "a collective of another axis of as many ranks",
     OtherGroup,
     {BugKind::kWrongGroup}},
    {"smaller-group",
     "a sum over one of the axes of its group",
     SmallerGroup,
     {BugKind::kWrongGroup, BugKind::kMissingCollective}},
    {"exchange-groups",
     "two collectives over each other's ranks",
     ExchangeGroups,
     {BugKind::kWrongGroup, BugKind::kPermuted}},
    {"add-before-reduce",
     "every rank adds what is added once",
     AddBeforeReduce,
     {BugKind::kPartialOperand}},
    {"reduce-one-summand",
     "a summand is added after the sum over the ranks",
     ReduceOneSummand,
     {BugKind::kPartialOperand, BugKind::kMissingCollective}},
    {"function-before-reduce",
     "a sum of functions instead of a function of the sum",
     FunctionBeforeReduce,
     {BugKind::kPartialOperand}},
};

}  // namespace

std::span<const Mutation> CollectiveMutations() {
  return kCollectiveMutations;
}

}  // namespace strata::prove

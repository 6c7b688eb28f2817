#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

bool ExchangeOperands(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 4> kOps = {"aten.mm.default", "aten.bmm.default",
                                                    "aten.sub.Tensor", "aten.div.Tensor"};
  const ValueId a = OperandAt(graph, node, 0), b = OperandAt(graph, node, 1);
  if (std::ranges::find(kOps, graph.op(node)) == kOps.end()) return false;
  if (!a.valid() || !b.valid() || a == b || !SameType(graph, a, b)) return false;
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 0, Arg(b));
  SetArg(rewriter, node, 1, Arg(a));
  return true;
}

/// A value of the same type that was computed last before.
bool OtherValueAt(Graph& graph, NodeId node, size_t position) {
  const ValueId operand = OperandAt(graph, node, position);
  if (graph.node(node).kind != NodeKind::kCall || !operand.valid()) return false;
  for (NodeId other = graph.node(node).prev; other.valid(); other = graph.node(other).prev) {
    if (graph.node(other).num_results != 1 || CollectiveOf(graph, other)) continue;
    const ValueId value = graph.result(other);
    if (value == operand || !SameType(graph, value, operand)) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, position, Arg(value));
    return true;
  }
  return false;
}

bool OtherValue(Graph& graph, NodeId node) {
  return OtherValueAt(graph, node, 0);
}

bool OtherOperand(Graph& graph, NodeId node) {
  return OtherValueAt(graph, node, 1) || OtherValueAt(graph, node, 2);
}

/// Twice the number at a position.
bool DoubleNumberAt(Graph& graph, NodeId node, size_t position) {
  const auto args = graph.args(node);
  if (position >= args.size()) return false;
  const Arg literal = args[position];
  Rewriter rewriter(graph);
  if (literal.kind() == ArgKind::kInt && literal.as_int() != 0) {
    SetArg(rewriter, node, position, Arg::Int(2 * literal.as_int()));
  } else if (literal.kind() == ArgKind::kFloat && literal.as_float() != 0) {
    SetArg(rewriter, node, position, Arg::Float(2 * literal.as_float()));
  } else {
    return false;
  }
  return true;
}

bool DoubleLiteral(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 5> kOps = {"aten.mul.Tensor", "aten.mul.Scalar",
                                                    "aten.div.Tensor", "aten.div.Scalar",
                                                    "aten.add.Scalar"};
  const bool is_site = std::ranges::find(kOps, graph.op(node)) != kOps.end();
  return is_site && DoubleNumberAt(graph, node, 1);
}

/// A power, an epsilon, a bound or a scale.
bool OtherLiteral(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 4> kOps = {"add", "pow", "clamp_min", "lerp"};
  if (std::ranges::find(kOps, BaseName(graph.op(node))) != kOps.end())
    return DoubleNumberAt(graph, node, graph.op(node) == "aten.lerp.Scalar" ? 2 : 1);
  for (size_t i = 1; i < graph.args(node).size(); ++i) {
    if (graph.args(node)[i].kind() == ArgKind::kFloat && DoubleNumberAt(graph, node, i))
      return true;
  }
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(node, i);
    if (kwarg.value.kind() != ArgKind::kFloat || kwarg.value.as_float() == 0) continue;
    std::vector<NamedArg> kwargs;
    for (size_t j = 0; j < graph.node(node).num_kwargs; ++j)
      kwargs.push_back(graph.kwarg(node, j));
    kwargs[i].value = Arg::Float(2 * kwarg.value.as_float());
    const std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
    Rewriter(graph).SetArgs(node, args, kwargs);
    return true;
  }
  return false;
}

/// The first operand passes instead: a summand, a factor or an offset is lost.
bool DropOperation(Graph& graph, NodeId node) {
  const ValueId operand = OperandAt(graph, node, 0), value = ComputedValue(graph, node);
  if (!operand.valid() || !value.valid() || !SameType(graph, operand, value)) return false;
  Rewriter(graph).ReplaceUses(value, operand);
  return true;
}

/// What a mask chooses is taken everywhere.
bool DropMask(Graph& graph, NodeId node) {
  if (graph.op(node) != "aten.where.self") return false;
  for (const size_t position : {size_t{1}, size_t{2}}) {
    const ValueId operand = OperandAt(graph, node, position);
    if (!operand.valid() || !SameType(graph, operand, graph.result(node))) continue;
    Rewriter(graph).ReplaceUses(graph.result(node), operand);
    return true;
  }
  return false;
}

/// An operand that need not be there is not passed on.
bool DropOptional(Graph& graph, NodeId node) {
  constexpr std::array<std::pair<std::string_view, size_t>, 6> kOptional = {
      {{"aten._fused_rms_norm.default", 2},
       {"aten.rms_norm.default", 2},
       {"aten.native_layer_norm.default", 2},
       {"aten.layer_norm.default", 2},
       {"aten.linear.default", 2},
       {"aten.nll_loss_forward.default", 2}}};
  for (const auto& [op, position] : kOptional) {
    if (graph.op(node) != op || !OperandAt(graph, node, position).valid()) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, position, Arg::None());
    return true;
  }
  return false;
}

/// All that reads `value` reads what `make` makes of it.
template <class Make>
bool Insert(Graph& graph, ValueId value, Make&& make) {
  const std::vector<Use> uses = UsesOf(graph, value);
  const NodeId def = graph.value(value).def;
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(def);
  const ValueId made = make(rewriter, def);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, made);
  return true;
}

/// A factor that belongs to the ranks of an axis, where none belongs.
bool TimesRanks(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  const Mesh mesh = MeshOf(graph);
  if (!IsRealTensor(graph, value) || mesh.num_ranks() < 2) return false;
  const MeshAxis& axis = mesh.axes()[static_cast<size_t>(node.index) % mesh.axes().size()];
  const bool divides = node.index % 2 == 0;
  return Insert(graph, value, [&](Rewriter& rewriter, NodeId def) {
    return CreateLike(rewriter, divides ? "aten.div.Scalar" : "aten.mul.Scalar",
                      {Arg(value), Arg::Int(axis.size)}, value, def);
  });
}

/// One of the summands of a sum is halved.
bool HalfSummand(Graph& graph, NodeId node) {
  const ValueId summand = OperandAt(graph, node, 1);
  if (graph.op(node) != "aten.add.Tensor" || !IsRealTensor(graph, summand)) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const ValueId half =
      CreateLike(rewriter, "aten.mul.Scalar", {Arg(summand), Arg::Float(0.5)}, summand, node);
  SetArg(rewriter, node, 1, Arg(half));
  return true;
}

/// A factor, divisor or power is applied once more.
bool ApplyTwice(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 8> kOps = {
      "aten.mul.Scalar", "aten.div.Scalar",        "aten.mul.Tensor", "aten.div.Tensor",
      "aten.sub.Tensor", "aten.pow.Tensor_Scalar", "aten.add.Tensor", "aten.sqrt.default"};
  const ValueId value = ComputedValue(graph, node), operand = OperandAt(graph, node, 0);
  if (std::ranges::find(kOps, graph.op(node)) == kOps.end() || !IsRealTensor(graph, value))
    return false;
  if (!operand.valid() || !SameType(graph, operand, value)) return false;
  return Insert(graph, value, [&](Rewriter& rewriter, NodeId def) {
    const NodeId again = rewriter.Clone(def);
    SetArg(rewriter, again, 0, Arg(value));
    return rewriter.graph().result(again);
  });
}

/// One of two summands or factors twice instead of both.
bool SumOfOne(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 2> kOps = {"aten.add.Tensor", "aten.mul.Tensor"};
  const ValueId a = OperandAt(graph, node, 0), b = OperandAt(graph, node, 1);
  if (std::ranges::find(kOps, graph.op(node)) == kOps.end() || !a.valid() || !b.valid())
    return false;
  if (a == b || !SameType(graph, a, b)) return false;
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 1, Arg(a));
  return true;
}

ValueId IndexOfRank(Rewriter& rewriter, const MeshAxis& axis, NodeId from) {
  const Arg group = Arg::String(rewriter.graph().module().Intern(axis.name));
  return rewriter.graph().result(rewriter.Create(kAxisIndexOp, {group}, {from}));
}

/// A value is made on the first rank of an axis alone, others have zeros.
bool FirstRankOnly(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  const Mesh mesh = MeshOf(graph);
  if (!IsRealTensor(graph, value) || mesh.num_ranks() < 2) return false;
  const MeshAxis& axis = mesh.axes()[static_cast<size_t>(node.index) % mesh.axes().size()];
  return Insert(graph, value, [&](Rewriter& rewriter, NodeId def) {
    const ValueId index = IndexOfRank(rewriter, axis, def);
    const NodeId mask = rewriter.Create("aten.eq.Scalar", {Arg(index), Arg::Int(0)}, {def});
    return CreateLike(rewriter, "aten.mul.Tensor", {Arg(value), Arg(graph.result(mask))}, value,
                      def);
  });
}

/// A rank has another factor than the others.
bool FactorOfRank(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  const Mesh mesh = MeshOf(graph);
  if (!IsRealTensor(graph, value) || mesh.num_ranks() < 2) return false;
  const MeshAxis& axis = mesh.axes()[static_cast<size_t>(node.index) % mesh.axes().size()];
  return Insert(graph, value, [&](Rewriter& rewriter, NodeId def) {
    const ValueId index = IndexOfRank(rewriter, axis, def);
    const NodeId factor = rewriter.Create("aten.add.Scalar", {Arg(index), Arg::Int(1)}, {def});
    return CreateLike(rewriter, "aten.mul.Tensor", {Arg(value), Arg(graph.result(factor))}, value,
                      def);
  });
}

/// Ranks begin with other copies of an input, as where each draws initial parameters by its own
/// seed.
bool InputOfRank(Graph& graph, NodeId node) {
  const Mesh mesh = MeshOf(graph);
  if (graph.node(node).kind != NodeKind::kPlaceholder || mesh.num_ranks() < 2) return false;
  const ValueId input = graph.result(node);
  const std::vector<Use> uses = UsesOf(graph, input);
  if (!IsRealTensor(graph, input) || uses.empty()) return false;
  const MeshAxis& axis = mesh.axes()[static_cast<size_t>(node.index) % mesh.axes().size()];
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(graph.placeholders().back());
  const ValueId index = IndexOfRank(rewriter, axis, node);
  const NodeId factor = rewriter.Create("aten.add.Scalar", {Arg(index), Arg::Int(1)}, {node});
  const ValueId own =
      CreateLike(rewriter, "aten.mul.Tensor", {Arg(input), Arg(graph.result(factor))}, input, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, own);
  return true;
}

/// Ignored labels count as others do.
bool CountAll(Graph& graph, NodeId node) {
  constexpr int64_t kIgnored = -100;
  const auto args = graph.args(node);
  const bool is_mask = graph.op(node) == "aten.ne.Scalar" && args.size() > 1 &&
                       args[1].kind() == ArgKind::kInt && args[1].as_int() == kIgnored;
  if (!is_mask) return false;
  const ValueId mask = graph.result(node);
  return Insert(graph, mask, [&](Rewriter& rewriter, NodeId def) {
    return CreateLike(rewriter, "aten.ones_like.default", {Arg(mask)}, mask, def);
  });
}

/// The value before the step is returned instead of the one after it.
bool LoseUpdate(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  if (!value.valid()) return false;
  for (const Use use : UsesOf(graph, value)) {
    if (graph.node(use.user).kind != NodeKind::kOutput && BaseName(graph.op(use.user)) != "copy_")
      continue;
    for (const NodeId input : graph.placeholders()) {
      if (!SameType(graph, graph.result(input), value)) continue;
      Rewriter rewriter(graph);
      rewriter.ReplaceUse(use, graph.result(input));
      return true;
    }
  }
  return false;
}

// To add one: a function above and a line here.
constexpr Mutation kValueMutations[] = {
    {"exchange-operands", "b - a instead of a - b", ExchangeOperands, {BugKind::kExchanged}},
    {"other-value",
     "an earlier value of the same type is read",
     OtherValue,
     {BugKind::kExchanged, BugKind::kMissingOperation}},
    {"other-operand",
     "the same for another operand than the first",
     OtherOperand,
     {BugKind::kExchanged, BugKind::kMissingOperation}},
    {"sum-of-one",
     "one of two summands or factors twice",
     SumOfOne,
     {BugKind::kExchanged, BugKind::kMissingOperation}},
    {"double-literal", "twice the factor or divisor", DoubleLiteral, {BugKind::kLiteral}},
    {"other-literal", "another power, epsilon, scale or bound", OtherLiteral, {BugKind::kLiteral}},
    {"times-ranks",
     "a factor or divisor of an axis where none belongs",
     TimesRanks,
     {BugKind::kFactor}},
    {"half-summand", "one of the summands of a sum is halved", HalfSummand, {BugKind::kFactor}},
    {"apply-twice",
     "a factor, divisor or decay is applied once more",
     ApplyTwice,
     {BugKind::kFactor, BugKind::kExtraOperation}},
    {"drop-operation",
     "a summand, factor or function is left out",
     DropOperation,
     {BugKind::kMissingOperation}},
    {"drop-mask",
     "what a mask chooses is taken everywhere",
     DropMask,
     {BugKind::kMissingOperation}},
    {"drop-optional",
     "an operand that need not be there is left out",
     DropOptional,
     {BugKind::kMissingOperation}},
    {"first-rank-only",
     "ranks but the first one of an axis have zeros",
     FirstRankOnly,
     {BugKind::kSomeRanks}},
    {"factor-of-rank", "ranks have other factors", FactorOfRank, {BugKind::kSomeRanks}},
    {"input-of-rank",
     "ranks begin with other copies of an input",
     InputOfRank,
     {BugKind::kSomeRanks}},
    {"count-all",
     "ignored labels count as others do",
     CountAll,
     {BugKind::kMissingOperation, BugKind::kExchanged, BugKind::kExtraOperation}},
    {"lose-update",
     "the value before the step is returned",
     LoseUpdate,
     {BugKind::kMissingOperation, BugKind::kExchanged}},
};

}  // namespace

std::span<const Mutation> ValueMutations() {
  return kValueMutations;
}

}  // namespace strata::prove

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

/// The elements of a list that a `cat` or `stack` joins; none: another operator, or fewer than two.
std::vector<Arg> PiecesOf(const Graph& graph, NodeId node) {
  const bool joins = graph.op(node) == "aten.cat.default" || graph.op(node) == "aten.stack.default";
  if (!joins || !graph.args(node)[0].is_span()) return {};
  const auto elements = graph.elements(graph.args(node)[0]);
  std::vector<Arg> pieces(elements.begin(), elements.end());
  const bool are_values = std::ranges::all_of(pieces, &Arg::is_value);
  return are_values && pieces.size() > 1 ? pieces : std::vector<Arg>();
}

void SetPieces(Rewriter& rewriter, NodeId node, const std::vector<Arg>& pieces) {
  SetArg(rewriter, node, 0, rewriter.MakeSpan(ArgKind::kList, pieces));
}

/// A chunk that was never computed is zeros.
bool LostPiece(Graph& graph, NodeId node) {
  std::vector<Arg> pieces = PiecesOf(graph, node);
  if (pieces.empty() || !IsRealTensor(graph, pieces.back().value())) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const ValueId last = pieces.back().value();
  pieces.back() = Arg(CreateLike(rewriter, "aten.zeros_like.default", {Arg(last)}, last, node));
  SetPieces(rewriter, node, pieces);
  return true;
}

/// The view of a bucket that was filled before: one chunk is there twice, another one not at all.
bool RepeatedPiece(Graph& graph, NodeId node) {
  std::vector<Arg> pieces = PiecesOf(graph, node);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (pieces[i].value() == pieces[i + 1].value()) continue;
    if (!SameType(graph, pieces[i].value(), pieces[i + 1].value())) continue;
    pieces[i + 1] = pieces[i];
    Rewriter rewriter(graph);
    SetPieces(rewriter, node, pieces);
    return true;
  }
  return false;
}

/// root(x) + epsilon instead of root(x + epsilon), or the other way round.
bool EpsilonMoved(Graph& graph, NodeId node) {
  const auto is_root = [&](NodeId at) {
    return graph.op(at) == "aten.sqrt.default" || graph.op(at) == "aten.rsqrt.default";
  };
  const auto adds = [&](NodeId at) {
    return graph.op(at) == "aten.add.Scalar" || graph.op(at) == "aten.add_.Scalar";
  };
  const ValueId operand = OperandAt(graph, node, 0);
  if (!operand.valid()) return false;
  const NodeId first = graph.value(operand).def;
  const bool is_pair = (is_root(node) && adds(first)) || (adds(node) && is_root(first));
  if (!is_pair || Mutates(graph, first) || Mutates(graph, node)) return false;
  const ValueId inside = OperandAt(graph, first, 0), result = graph.result(node);
  if (!inside.valid()) return false;
  const std::vector<Use> uses = UsesOf(graph, result);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(node);
  const NodeId inner = rewriter.Clone(node);
  SetArg(rewriter, inner, 0, Arg(inside));
  const NodeId outer = rewriter.Clone(first);
  SetArg(rewriter, outer, 0, Arg(graph.result(inner)));
  for (const Use use : uses)
    rewriter.ReplaceUse(use, graph.result(outer));
  return true;
}

/// Of two summands only the second stays: what was accumulated before is lost.
bool LoseAccumulated(Graph& graph, NodeId node) {
  const ValueId other = OperandAt(graph, node, 1), value = ComputedValue(graph, node);
  if (graph.op(node) != "aten.add.Tensor" || !other.valid() || !value.valid()) return false;
  if (!SameType(graph, other, value)) return false;
  Rewriter(graph).ReplaceUses(value, other);
  return true;
}

/// The last row, that of a token at the end of what is padded, is zeros.
bool LoseLastRow(Graph& graph, NodeId node) {
  const ValueId value = ComputedValue(graph, node);
  if (!IsRealTensor(graph, value)) return false;
  const Type& type = graph.module().types()[graph.value(value).type];
  if (type.sizes.empty()) return false;
  const auto rows = graph.module().dims().AsConst(type.sizes[0]);
  if (!rows || *rows < 2) return false;
  const size_t rank = type.sizes.size();
  const std::vector<Use> uses = UsesOf(graph, value);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(node);
  const ValueId rest =
      CreateLike(rewriter, "aten.slice.Tensor",
                 {Arg(value), Arg::Int(0), Arg::Int(0), Arg::Int(*rows - 1)}, value, node);
  std::vector<Arg> padding(2 * rank, Arg::Int(0));
  padding.back() = Arg::Int(1);
  const Arg list = rewriter.MakeSpan(ArgKind::kList, padding);
  const ValueId padded =
      CreateLike(rewriter, "aten.constant_pad_nd.default", {Arg(rest), list}, value, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, padded);
  return true;
}

/// Heads and positions change places by a view, which does not move elements.
bool ViewForTranspose(Graph& graph, NodeId node) {
  if (graph.op(node) != "aten.transpose.int") return false;
  const auto& sizes = graph.module().types()[graph.value(graph.result(node)).type].sizes;
  std::vector<Arg> list;
  int wide = 0;
  for (const DimId size : sizes) {
    const auto number = graph.module().dims().AsConst(size);
    if (!number) return false;
    wide += *number > 1 ? 1 : 0;
    list.push_back(Arg::Int(*number));
  }
  if (wide < 2) return false;
  Rewriter rewriter(graph);
  const Arg args[] = {graph.args(node)[0], rewriter.MakeSpan(ArgKind::kList, list)};
  rewriter.SetOp(node, "aten.reshape.default");
  rewriter.SetArgs(node, args, {});
  return true;
}

/// A number that a call of the same operator has elsewhere, such as the other beta of Adam.
bool NumberOfAnother(Graph& graph, NodeId node) {
  const auto args = graph.args(node);
  const auto is_number = [](const Arg& arg) { return arg.kind() == ArgKind::kFloat; };
  const auto at = std::ranges::find_if(args, is_number);
  if (graph.node(node).kind != NodeKind::kCall || at == args.end()) return false;
  const auto position = static_cast<size_t>(at - args.begin());
  for (const NodeId other : graph.nodes()) {
    if (graph.node(other).kind != NodeKind::kCall || graph.op(other) != graph.op(node)) continue;
    if (position >= graph.args(other).size() || !is_number(graph.args(other)[position])) continue;
    const double number = graph.args(other)[position].as_float();
    if (number == at->as_float()) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, position, Arg::Float(number));
    return true;
  }
  return false;
}

/// Two writes to the same memory, one right after the other, in the other order: decay after the
/// step instead of before it.
bool ExchangeWrites(Graph& graph, NodeId node) {
  const auto writes = [&](NodeId at) {
    return at.valid() && graph.node(at).kind == NodeKind::kCall && Mutates(graph, at) &&
           graph.node(at).num_results == 1 && OperandAt(graph, at, 0).valid();
  };
  if (!writes(node)) return false;
  const ValueId first = graph.result(node);
  const std::vector<Use> uses = UsesOf(graph, first);
  if (uses.size() != 1 || !writes(uses[0].user)) return false;
  const NodeId next = uses[0].user;
  if (OperandAt(graph, next, 0) != first || graph.op(next) == graph.op(node)) return false;
  const std::vector<int32_t> order = OrderOf(graph);
  for (const ValueId operand : graph.operands(next)) {
    const NodeId def = graph.value(operand).def;
    if (def == node) continue;
    if (order[static_cast<size_t>(def.index)] > order[static_cast<size_t>(node.index)])
      return false;
  }
  const ValueId last = graph.result(next);
  const std::vector<Use> of_last = UsesOf(graph, last);
  Rewriter rewriter(graph);
  const Arg memory = graph.args(node)[0];
  rewriter.MoveBefore(next, node);
  SetArg(rewriter, next, 0, memory);
  SetArg(rewriter, node, 0, Arg(last));
  for (const Use use : of_last)
    rewriter.ReplaceUse(use, first);
  return true;
}

/// A mean where the sum belongs.
bool MeanForSum(Graph& graph, NodeId node) {
  if (!IsRealTensor(graph, graph.node(node).num_results == 1 ? graph.result(node) : ValueId{}))
    return false;
  if (graph.op(node) == "aten.sum.dim_IntList") {
    Rewriter(graph).SetOp(node, "aten.mean.dim");
  } else if (graph.op(node) == "aten.sum.default") {
    Rewriter(graph).SetOp(node, "aten.mean.default");
  } else {
    return false;
  }
  return true;
}

/// A softmax or running sum along another dimension of as many elements.
bool OtherSoftmaxDim(Graph& graph, NodeId node) {
  const std::string_view base = BaseName(graph.op(node));
  const ValueId operand = OperandAt(graph, node, 0);
  const bool is_site = base == "_softmax" || base == "_log_softmax" || base == "cumsum" ||
                       base == "softmax" || base == "log_softmax";
  if (!is_site || !operand.valid()) return false;
  const auto& sizes = graph.module().types()[graph.value(operand).type].sizes;
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = graph.args(node)[1].as_int();
  const int64_t own = dim < 0 ? dim + rank : dim;
  for (int64_t other = 0; other < rank; ++other) {
    if (other == own) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, 1, Arg::Int(other));
    return true;
  }
  return false;
}

/// Another function of the same operand.
bool OtherFunction(Graph& graph, NodeId node) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"aten.silu.default", "aten.relu.default"},
      {"aten.sigmoid.default", "aten.tanh.default"},
      {"aten.sqrt.default", "aten.rsqrt.default"},
      {"aten.rsqrt.default", "aten.reciprocal.default"},
      {"aten.exp.default", "aten.expm1.default"},
      {"aten._log_softmax.default", "aten._softmax.default"}};
  for (const auto& [from, to] : kOthers) {
    if (graph.op(node) != from) continue;
    Rewriter(graph).SetOp(node, to);
    return true;
  }
  return false;
}

/// What reads the operand of a function elsewhere, such as its backward, reads the result.
bool ResultForOperand(Graph& graph, NodeId node) {
  const ValueId operand = OperandAt(graph, node, 0), value = ComputedValue(graph, node);
  if (!operand.valid() || !value.valid() || !SameType(graph, operand, value)) return false;
  const std::vector<int32_t> order = OrderOf(graph);
  for (const Use use : UsesOf(graph, operand)) {
    const bool is_later =
        order[static_cast<size_t>(use.user.index)] > order[static_cast<size_t>(node.index)];
    if (!is_later || graph.node(use.user).kind != NodeKind::kCall || Mutates(graph, use.user))
      continue;
    Rewriter(graph).ReplaceUse(use, value);
    return true;
  }
  return false;
}

// To add one: a function above and a line here.
constexpr Mutation kReportedValueMutations[] = {
    {"lost-piece",
     "a chunk is zeros in what is joined",
     LostPiece,
     {BugKind::kMissingOperation, BugKind::kExchanged, BugKind::kExtraOperation}},
    {"repeated-piece",
     "one chunk twice, and another one not at all",
     RepeatedPiece,
     {BugKind::kExchanged, BugKind::kWrongPart, BugKind::kMissingOperation}},
    {"epsilon-moved",
     "an epsilon outside of a root instead of inside, or inside",
     EpsilonMoved,
     {BugKind::kWrongOperation, BugKind::kMissingOperation, BugKind::kExtraOperation,
      BugKind::kExchanged}},
    {"lose-accumulated",
     "what was accumulated before is lost",
     LoseAccumulated,
     {BugKind::kMissingOperation}},
    {"lose-last-row",
     "the last row is zeros",
     LoseLastRow,
     {BugKind::kMissingOperation, BugKind::kExtraOperation, BugKind::kWrongPart}},
    {"view-for-transpose",
     "heads and positions change places by a view",
     ViewForTranspose,
     {BugKind::kPermuted, BugKind::kWrongOperation, BugKind::kMissingOperation}},
    {"number-of-another",
     "a number of another call, such as the other beta",
     NumberOfAnother,
     {BugKind::kLiteral}},
    {"exchange-writes",
     "decay after the step instead of before it",
     ExchangeWrites,
     {BugKind::kExchanged, BugKind::kMissingOperation, BugKind::kWrongOperation}},
    {"mean-for-sum",
     "a mean where a sum belongs",
     MeanForSum,
     {BugKind::kWrongOperation, BugKind::kFactor}},
    {"other-softmax-dim",
     "a softmax or running sum along another dimension",
     OtherSoftmaxDim,
     {BugKind::kWrongDim}},
    {"other-function", "another function", OtherFunction, {BugKind::kWrongOperation}},
    {"result-for-operand",
     "backward reads the result of a function for its operand",
     ResultForOperand,
     {BugKind::kExchanged, BugKind::kExtraOperation}},
};

}  // namespace

std::span<const Mutation> ReportedValueMutations() {
  return kReportedValueMutations;
}

}  // namespace strata::prove

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "ir/module.h"
#include "passes/core/collectives.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

/// The size of a dimension of a value; none: it is not known.
std::optional<int64_t> SizeOf(const Graph& graph, ValueId value, size_t dim) {
  const TypeId type = graph.value(value).type;
  if (!type.valid() || graph.module().types()[type].kind != TypeKind::kTensor) return std::nullopt;
  const auto& sizes = graph.module().types()[type].sizes;
  if (dim >= sizes.size()) return std::nullopt;
  return graph.module().dims().AsConst(sizes[dim]);
}

Arg ListOf(Rewriter& rewriter, const std::vector<int64_t>& integers) {
  std::vector<Arg> list;
  for (const int64_t integer : integers)
    list.push_back(Arg::Int(integer));
  return rewriter.MakeSpan(ArgKind::kList, list);
}

/// Every rank takes the part of the first.
bool FirstPart(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisShardOp) return false;
  const Arg dim = graph.args(node)[1];
  const auto size = SizeOf(graph, graph.result(node), static_cast<size_t>(dim.as_int()));
  if (!size) return false;
  const Arg args[] = {graph.args(node)[0], dim, Arg::Int(0), Arg::Int(*size)};
  Rewriter rewriter(graph);
  rewriter.SetOp(node, "aten.slice.Tensor");
  rewriter.SetArgs(node, args, {});
  return true;
}

/// Every rank takes the part of the first, of the sum.
bool FirstPartOfSum(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kReduceScatter)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const auto size = SizeOf(graph, graph.result(node), 0);
  if (!wait.valid() || !size) return false;
  const ValueId part = graph.result(wait), summand = graph.args(node)[0].value();
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(wait);
  const Arg reduce = graph.args(node)[1], group = graph.args(node).back();
  const ValueId sum =
      CreateLike(rewriter, kAllReduceOp, {Arg(summand), reduce, group}, summand, node);
  const ValueId done = CreateLike(rewriter, kWaitOp, {Arg(sum)}, summand, wait);
  const ValueId first =
      CreateLike(rewriter, "aten.slice.Tensor",
                 {Arg(done), Arg::Int(0), Arg::Int(0), Arg::Int(*size)}, part, node);
  rewriter.ReplaceUses(part, first);
  return true;
}

/// A rank counts itself as the first one: offsets and masks are those of the first.
bool FirstIndex(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisIndexOp) return false;
  const std::vector<Use> uses = UsesOf(graph, graph.result(node));
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(node);
  const ValueId index = graph.result(node);
  const ValueId zero =
      CreateLike(rewriter, "aten.mul.Scalar", {Arg(index), Arg::Int(0)}, index, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, zero);
  return true;
}

/// Parts of interleaved rows instead of consecutive ones.
bool InterleavedPart(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisShardOp) return false;
  const ValueId whole = graph.args(node)[0].value();
  const int64_t ranks = graph.args(node)[3].as_int();
  if (graph.args(node)[1].as_int() != 0) return false;
  const TypeId type = graph.value(whole).type;
  std::vector<int64_t> sizes;
  for (size_t dim = 0; dim < graph.module().types()[type].sizes.size(); ++dim) {
    const auto size = SizeOf(graph, whole, dim);
    if (!size) return false;
    sizes.push_back(*size);
  }
  if (sizes[0] % ranks != 0 || sizes[0] == ranks) return false;
  std::vector<int64_t> apart = sizes;
  apart[0] = ranks;
  apart.insert(apart.begin(), sizes[0] / ranks);
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const Arg whole_sizes = ListOf(rewriter, sizes);
  const Arg apart_sizes = ListOf(rewriter, apart);
  const ValueId pairs =
      CreateLike(rewriter, "aten.reshape.default", {Arg(whole), apart_sizes}, whole, node);
  const ValueId turned = CreateLike(rewriter, "aten.transpose.int",
                                    {Arg(pairs), Arg::Int(0), Arg::Int(1)}, whole, node);
  const ValueId mixed =
      CreateLike(rewriter, "aten.reshape.default", {Arg(turned), whole_sizes}, whole, node);
  SetArg(rewriter, node, 0, Arg(mixed));
  return true;
}

/// Parts of the ranks are gathered in reverse order.
bool ReverseGather(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllGather)) return false;
  const NodeId wait = OnlyWaitOf(graph, node);
  const auto size = SizeOf(graph, graph.result(node), 0);
  const int64_t ranks = GroupSizeOf(graph, node);
  if (!wait.valid() || !size || *size % ranks != 0 || *size == 0) return false;
  const ValueId whole = graph.result(wait);
  const std::vector<Use> uses = UsesOf(graph, whole);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(wait);
  std::vector<Arg> parts;
  for (int64_t i = ranks; i-- > 0;) {
    const Arg begin = Arg::Int(i * (*size / ranks)), end = Arg::Int((i + 1) * (*size / ranks));
    parts.emplace_back(CreateLike(rewriter, "aten.slice.Tensor",
                                  {Arg(whole), Arg::Int(0), begin, end}, whole, node));
  }
  const Arg list = rewriter.MakeSpan(ArgKind::kList, parts);
  const ValueId reversed =
      CreateLike(rewriter, "aten.cat.default", {list, Arg::Int(0)}, whole, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, reversed);
  return true;
}

/// A dimension of as many elements.
bool OtherDim(Graph& graph, NodeId node) {
  constexpr std::array kOps = {kAxisShardOp, std::string_view("aten.slice.Tensor"),
                               std::string_view("aten.select.int")};
  const ValueId operand = OperandAt(graph, node, 0);
  if (std::ranges::find(kOps, graph.op(node)) == kOps.end() || !operand.valid()) return false;
  const TypeId type = graph.value(operand).type;
  const auto args = graph.args(node);
  if (!type.valid() || args.size() < 2 || args[1].kind() != ArgKind::kInt) return false;
  const auto& sizes = graph.module().types()[type].sizes;
  const int64_t dim = args[1].as_int();
  for (size_t other = 0; dim >= 0 && other < sizes.size(); ++other) {
    if (static_cast<int64_t>(other) == dim || sizes[other] != sizes[static_cast<size_t>(dim)])
      continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, 1, Arg::Int(static_cast<int64_t>(other)));
    return true;
  }
  return false;
}

/// A slice or a row one further, or one before.
bool ShiftedSlice(Graph& graph, NodeId node) {
  const auto args = graph.args(node);
  if (args.size() < 3 || args[1].kind() != ArgKind::kInt || args[2].kind() != ArgKind::kInt)
    return false;
  const ValueId operand = OperandAt(graph, node, 0);
  const bool is_slice = graph.op(node) == "aten.slice.Tensor";
  if ((!is_slice && graph.op(node) != "aten.select.int") || !operand.valid()) return false;
  const auto size = SizeOf(graph, operand, static_cast<size_t>(args[1].as_int()));
  const int64_t begin = args[2].as_int();
  const bool has_end = is_slice && args.size() > 3 && args[3].kind() == ArgKind::kInt;
  if (!size || begin < 0 || (is_slice && !has_end)) return false;
  const int64_t end = is_slice ? std::min(args[3].as_int(), *size) : begin + 1;
  if (end <= begin || end - begin >= *size) return false;
  const int64_t by = end < *size ? 1 : -1;
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 2, Arg::Int(begin + by));
  if (is_slice) SetArg(rewriter, node, 3, Arg::Int(end + by));
  return true;
}

/// Of a bucket that is packed, or of other lists.
bool ExchangePieces(Graph& graph, NodeId node) {
  if (graph.op(node) != "aten.cat.default" || !graph.args(node)[0].is_span()) return false;
  const auto elements = graph.elements(graph.args(node)[0]);
  std::vector<Arg> pieces(elements.begin(), elements.end());
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (!pieces[i].is_value() || !pieces[i + 1].is_value()) continue;
    const ValueId a = pieces[i].value(), b = pieces[i + 1].value();
    if (a == b || !SameType(graph, a, b)) continue;
    std::swap(pieces[i], pieces[i + 1]);
    Rewriter rewriter(graph);
    SetArg(rewriter, node, 0, rewriter.MakeSpan(ArgKind::kList, pieces));
    return true;
  }
  return false;
}

/// What reads one value reads the other.
void ExchangeUses(Graph& graph, ValueId a, ValueId b) {
  const std::vector<Use> of_a = UsesOf(graph, a), of_b = UsesOf(graph, b);
  Rewriter rewriter(graph);
  for (const Use use : of_a)
    rewriter.ReplaceUse(use, b);
  for (const Use use : of_b)
    rewriter.ReplaceUse(use, a);
}

bool ExchangeResults(Graph& graph, NodeId node) {
  for (size_t i = 0; i + 1 < graph.node(node).num_results; ++i) {
    const ValueId a = graph.result(node, i), b = graph.result(node, i + 1);
    if (graph.uses(a).empty() || graph.uses(b).empty() || !SameType(graph, a, b)) continue;
    ExchangeUses(graph, a, b);
    return true;
  }
  return false;
}

/// A parameter, gradient or state is bound to the next input of its type.
bool ExchangeInputs(Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kPlaceholder) return false;
  const ValueId a = graph.result(node);
  for (NodeId other = graph.node(node).next; other.valid(); other = graph.node(other).next) {
    if (graph.node(other).kind != NodeKind::kPlaceholder) return false;
    const ValueId b = graph.result(other);
    if (!SameType(graph, a, b) || graph.uses(a).empty() || graph.uses(b).empty()) continue;
    ExchangeUses(graph, a, b);
    return true;
  }
  return false;
}

// To add one: a function above and a line here.
constexpr Mutation kPartMutations[] = {
    {"first-part", "every rank takes the part of the first", FirstPart, {BugKind::kWrongPart}},
    {"first-part-of-sum",
     "every rank takes the first part of the sum",
     FirstPartOfSum,
     {BugKind::kWrongPart, BugKind::kWrongOperation}},
    {"first-index",
     "offsets and masks of the first rank on all",
     FirstIndex,
     {BugKind::kWrongPart, BugKind::kWrongMask, BugKind::kSomeRanks, BugKind::kFactor}},
    {"interleaved-part",
     "every n-th row instead of consecutive ones",
     InterleavedPart,
     {BugKind::kWrongPart, BugKind::kPermuted}},
    {"reverse-gather",
     "parts are gathered in reverse order",
     ReverseGather,
     {BugKind::kPermuted, BugKind::kExchanged}},
    {"other-dim",
     "another dimension of as many elements",
     OtherDim,
     {BugKind::kWrongDim, BugKind::kInvalid}},
    {"shifted-slice",
     "a slice or a row one further",
     ShiftedSlice,
     {BugKind::kWrongPart, BugKind::kLiteral, BugKind::kExchanged, BugKind::kInvalid}},
    {"exchange-pieces",
     "a bucket is packed in another order",
     ExchangePieces,
     {BugKind::kExchanged, BugKind::kPermuted}},
    {"exchange-results",
     "a bucket is unpacked in another order",
     ExchangeResults,
     {BugKind::kExchanged, BugKind::kPermuted}},
    {"exchange-inputs",
     "a parameter or state of another layer",
     ExchangeInputs,
     {BugKind::kExchanged}},
};

}  // namespace

std::span<const Mutation> PartMutations() {
  return kPartMutations;
}

}  // namespace strata::prove

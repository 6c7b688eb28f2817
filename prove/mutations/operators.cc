#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

using Renaming = std::pair<std::string_view, std::string_view>;

bool Rename(Graph& graph, NodeId node, std::span<const Renaming> renamings) {
  for (const auto& [from, to] : renamings) {
    if (graph.op(node) != from) continue;
    Rewriter(graph).SetOp(node, to);
    return true;
  }
  return false;
}

bool FlipSign(Graph& graph, NodeId node) {
  constexpr Renaming kSigns[] = {{"aten.add.Tensor", "aten.sub.Tensor"},
                                 {"aten.sub.Tensor", "aten.add.Tensor"},
                                 {"aten.add_.Tensor", "aten.sub_.Tensor"}};
  const ValueId value = graph.node(node).num_results == 1 ? graph.result(node) : ValueId{};
  return IsRealTensor(graph, value) && Rename(graph, node, kSigns);
}

bool OtherComparison(Graph& graph, NodeId node) {
  constexpr Renaming kNegations[] = {
      {"aten.lt.Scalar", "aten.ge.Scalar"}, {"aten.ge.Scalar", "aten.lt.Scalar"},
      {"aten.eq.Scalar", "aten.ne.Scalar"}, {"aten.ne.Scalar", "aten.eq.Scalar"},
      {"aten.lt.Tensor", "aten.ge.Tensor"}, {"aten.ge.Tensor", "aten.lt.Tensor"},
      {"aten.eq.Tensor", "aten.ne.Tensor"}, {"aten.gt.Tensor", "aten.le.Tensor"}};
  return Rename(graph, node, kNegations);
}

/// Causal or not, ascending or descending.
bool FlipFlag(Graph& graph, NodeId node) {
  const std::string_view base = BaseName(graph.op(node));
  const bool is_site =
      base.find("attention") != base.npos || base == "sort" || base == "topk" || base == "argsort";
  const auto args = graph.args(node);
  for (size_t i = 1; is_site && i < args.size(); ++i) {
    if (args[i].kind() != ArgKind::kBool) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, i, Arg::Bool(!args[i].as_bool()));
    return true;
  }
  return false;
}

std::vector<DimId> SizesOf(const Graph& graph, ValueId value) {
  const TypeId type = value.valid() ? graph.value(value).type : TypeId{};
  return type.valid() ? graph.module().types()[type].sizes : std::vector<DimId>();
}

/// A square matrix is read transposed.
bool TransposeOperand(Graph& graph, NodeId node) {
  if (graph.op(node) != "aten.mm.default" && graph.op(node) != "aten.bmm.default") return false;
  for (const size_t position : {size_t{1}, size_t{0}}) {
    const ValueId operand = OperandAt(graph, node, position);
    const std::vector<DimId> sizes = SizesOf(graph, operand);
    if (sizes.size() < 2 || sizes[sizes.size() - 1] != sizes[sizes.size() - 2]) continue;
    Rewriter rewriter(graph);
    rewriter.SetCursorBefore(node);
    const ValueId turned = CreateLike(rewriter, "aten.transpose.int",
                                      {Arg(operand), Arg::Int(-2), Arg::Int(-1)}, operand, node);
    SetArg(rewriter, node, position, Arg(turned));
    return true;
  }
  return false;
}

/// The dimension that a sum, mean or maximum over one dimension removes.
std::optional<size_t> ReducedDim(const Graph& graph, NodeId node) {
  const auto args = graph.args(node);
  const size_t rank = SizesOf(graph, OperandAt(graph, node, 0)).size();
  if (args.size() < 2 || !args[1].is_span() || rank == 0) return std::nullopt;
  const auto dims = graph.elements(args[1]);
  if (dims.size() != 1 || dims[0].kind() != ArgKind::kInt) return std::nullopt;
  const int64_t dim = dims[0].as_int();
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

/// A sum, mean or maximum over another dimension of as many elements.
bool OtherReducedDim(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 3> kOps = {"aten.sum.dim_IntList", "aten.mean.dim",
                                                    "aten.amax.default"};
  if (std::ranges::find(kOps, graph.op(node)) == kOps.end()) return false;
  const std::optional<size_t> dim = ReducedDim(graph, node);
  const std::vector<DimId> sizes = SizesOf(graph, OperandAt(graph, node, 0));
  for (size_t other = 0; dim && other < sizes.size(); ++other) {
    if (other == *dim || sizes[other] != sizes[*dim]) continue;
    Rewriter rewriter(graph);
    const Arg dims = Arg::Int(static_cast<int64_t>(other));
    SetArg(rewriter, node, 1, rewriter.MakeSpan(ArgKind::kList, {dims}));
    return true;
  }
  return false;
}

/// The first summand instead of the sum, such as the gradient of one of the heads that share a key.
bool FirstSummand(Graph& graph, NodeId node) {
  const std::optional<size_t> dim =
      graph.op(node) == "aten.sum.dim_IntList" ? ReducedDim(graph, node) : std::nullopt;
  const auto args = graph.args(node);
  if (!dim || (args.size() > 2 && args[2].kind() == ArgKind::kBool && args[2].as_bool()))
    return false;
  const Arg select[] = {args[0], Arg::Int(static_cast<int64_t>(*dim)), Arg::Int(0)};
  Rewriter rewriter(graph);
  rewriter.SetOp(node, "aten.select.int");
  rewriter.SetArgs(node, select, {});
  return true;
}

/// A norm is not taken of all parameters.
bool DropTerm(Graph& graph, NodeId node) {
  if (graph.op(node) != "aten.stack.default" || !graph.args(node)[0].is_span()) return false;
  const auto elements = graph.elements(graph.args(node)[0]);
  std::vector<Arg> rest(elements.begin(), elements.end());
  if (rest.size() < 2) return false;
  rest.erase(rest.begin() + static_cast<int64_t>(static_cast<size_t>(node.index) % rest.size()));
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 0, rewriter.MakeSpan(ArgKind::kList, rest));
  return true;
}

/// Memory is read as it was before something was added or copied to it.
bool StaleValue(Graph& graph, NodeId node) {
  const ValueId written = OperandAt(graph, node, 0);
  const bool writes = graph.node(node).kind == NodeKind::kCall && Mutates(graph, node) &&
                      graph.node(node).num_results == 1;
  if (!writes || !written.valid() || graph.uses(graph.result(node)).empty()) return false;
  const ValueId result = graph.result(node);
  const std::vector<Use> uses = UsesOf(graph, result);
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const ValueId before = CreateLike(rewriter, "aten.clone.default", {Arg(written)}, result, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, before);
  return true;
}

/// Nothing is added or copied to memory.
bool DropWrite(Graph& graph, NodeId node) {
  const ValueId written = OperandAt(graph, node, 0);
  const bool writes = graph.node(node).kind == NodeKind::kCall && Mutates(graph, node) &&
                      graph.node(node).num_results == 1;
  if (!writes || !written.valid() || CollectiveOf(graph, node)) return false;
  if (!SameType(graph, written, graph.result(node))) return false;
  Rewriter rewriter(graph);
  rewriter.ReplaceUses(graph.result(node), written);
  rewriter.Erase(node);
  return true;
}

/// A rank counts itself as the next one.
bool NextIndex(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisIndexOp) return false;
  const Mesh mesh = MeshOf(graph);
  const auto members = mesh.GroupOf(graph.module().str(graph.args(node)[0].str()), 0);
  if (!members) return false;
  const ValueId index = graph.result(node);
  const std::vector<Use> uses = UsesOf(graph, index);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(node);
  const ValueId more =
      CreateLike(rewriter, "aten.add.Scalar", {Arg(index), Arg::Int(1)}, index, node);
  const Arg size = Arg::Int(static_cast<int64_t>(members->size()));
  const ValueId next =
      CreateLike(rewriter, "aten.remainder.Scalar", {Arg(more), size}, index, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, next);
  return true;
}

/// Ranks take parts that begin one row late.
bool ShiftedPart(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisShardOp) return false;
  const ValueId whole = graph.args(node)[0].value();
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  const Arg by = rewriter.MakeSpan(ArgKind::kList, {Arg::Int(-1)});
  const Arg dims = rewriter.MakeSpan(ArgKind::kList, {graph.args(node)[1]});
  const ValueId rolled =
      CreateLike(rewriter, "aten.roll.default", {Arg(whole), by, dims}, whole, node);
  SetArg(rewriter, node, 0, Arg(rolled));
  return true;
}

/// An axis of another number of ranks, or one more axis.
bool SetAxis(Graph& graph, NodeId node, bool adds) {
  if (!IsCollective(graph, node, CollectiveKind::kAllReduce)) return false;
  const Mesh mesh = MeshOf(graph);
  const std::string group(GroupOf(graph, node));
  const auto members = mesh.GroupOf(group, 0);
  if (!members) return false;
  for (const MeshAxis& axis : mesh.axes()) {
    const std::string name = adds ? group + "+" + axis.name : axis.name;
    const auto others = mesh.GroupOf(name, 0);
    if (!others || *others == *members || (!adds && others->size() == members->size())) continue;
    if (!adds && std::ranges::includes(*members, *others)) continue;
    Rewriter rewriter(graph);
    SetGroup(rewriter, node, name);
    return true;
  }
  return false;
}

bool OtherAxis(Graph& graph, NodeId node) {
  return SetAxis(graph, node, false);
}

bool LargerGroup(Graph& graph, NodeId node) {
  return SetAxis(graph, node, true);
}

bool IsIndex(const Graph& graph, ValueId value) {
  const TypeId type = value.valid() ? graph.value(value).type : TypeId{};
  if (!type.valid()) return false;
  const Type& tensor = graph.module().types()[type];
  return tensor.kind == TypeKind::kTensor && tensor.dtype == DType::kI64 && !tensor.sizes.empty();
}

/// Rows of tokens are taken, or put back, in reverse order.
bool ReverseIndices(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 6> kBases = {"index_select", "gather",      "index_add",
                                                      "scatter",      "scatter_add", "embedding"};
  const std::string_view base = BaseName(graph.op(node));
  if (std::ranges::find(kBases, base) == kBases.end()) return false;
  for (size_t i = 1; i < graph.args(node).size(); ++i) {
    const ValueId index = OperandAt(graph, node, i);
    if (!IsIndex(graph, index)) continue;
    Rewriter rewriter(graph);
    rewriter.SetCursorBefore(node);
    const Arg dims = rewriter.MakeSpan(ArgKind::kList, {Arg::Int(0)});
    SetArg(rewriter, node, i,
           Arg(CreateLike(rewriter, "aten.flip.default", {Arg(index), dims}, index, node)));
    return true;
  }
  return false;
}

/// What each rank gets is taken for what it sends.
bool ExchangeSplits(Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllToAll) || graph.args(node).size() < 4)
    return false;
  const Arg first = graph.args(node)[1], second = graph.args(node)[2];
  if (!first.is_span() || !second.is_span()) return false;
  const auto elements_of = [&](const Arg& list) {
    const auto elements = graph.elements(list);
    return std::vector<Arg>(elements.begin(), elements.end());
  };
  const std::vector<Arg> received = elements_of(first), sent = elements_of(second);
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 1, rewriter.MakeSpan(first.kind(), sent));
  SetArg(rewriter, node, 2, rewriter.MakeSpan(second.kind(), received));
  return true;
}

// To add one: a function above and a line here.
constexpr Mutation kOperatorMutations[] = {
    {"flip-sign", "a - b instead of a + b", FlipSign, {BugKind::kWrongOperation}},
    {"other-comparison",
     "what a mask leaves out is taken",
     OtherComparison,
     {BugKind::kWrongOperation, BugKind::kWrongMask}},
    {"flip-flag",
     "attention without its causal mask, another order",
     FlipFlag,
     {BugKind::kLiteral}},
    {"transpose-operand",
     "a square matrix is read transposed",
     TransposeOperand,
     {BugKind::kPermuted, BugKind::kExtraOperation}},
    {"other-reduced-dim",
     "a sum over another dimension of as many elements",
     OtherReducedDim,
     {BugKind::kWrongDim}},
    {"first-summand",
     "the first summand instead of the sum",
     FirstSummand,
     {BugKind::kWrongOperation, BugKind::kMissingOperation, BugKind::kInvalid}},
    {"drop-term",
     "a norm is not taken of all parameters",
     DropTerm,
     {BugKind::kExchanged, BugKind::kMissingOperation}},
    {"stale-value",
     "memory is read as it was before a write",
     StaleValue,
     {BugKind::kMissingOperation, BugKind::kExchanged}},
    {"drop-write", "nothing is added or copied to memory", DropWrite, {BugKind::kMissingOperation}},
    {"next-index",
     "a rank counts itself as the next one",
     NextIndex,
     {BugKind::kWrongPart, BugKind::kWrongMask, BugKind::kSomeRanks, BugKind::kExtraOperation}},
    {"shifted-part",
     "parts of ranks begin one row late",
     ShiftedPart,
     {BugKind::kWrongPart, BugKind::kPermuted, BugKind::kExtraOperation}},
    {"other-axis",
     "a sum over an axis of another number of ranks",
     OtherAxis,
     {BugKind::kWrongGroup}},
    {"larger-group",
     "a sum over one more axis",
     LargerGroup,
     {BugKind::kWrongGroup, BugKind::kExtraCollective}},
    {"reverse-indices",
     "rows are taken, or put back, in reverse order",
     ReverseIndices,
     {BugKind::kPermuted, BugKind::kExtraOperation}},
    {"exchange-splits",
     "what a rank gets is taken for what it sends",
     ExchangeSplits,
     {BugKind::kExchanged, BugKind::kInvalid}},
};

}  // namespace

std::span<const Mutation> OperatorMutations() {
  return kOperatorMutations;
}

}  // namespace strata::prove

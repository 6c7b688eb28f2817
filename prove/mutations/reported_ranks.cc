#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

/// One of those that read a sum over ranks, such as the step of a parameter, reads the summand.
bool UnreducedUse(Graph& graph, NodeId node) {
  const NodeId wait = IsReduction(graph, node) ? OnlyWaitOf(graph, node) : NodeId{};
  if (!wait.valid()) return false;
  const ValueId own = graph.args(node)[0].value(), sum = graph.result(wait);
  const std::vector<Use> uses = UsesOf(graph, sum);
  if (uses.size() < 2 || !SameType(graph, own, sum)) return false;
  Rewriter(graph).ReplaceUse(uses.back(), own);
  return true;
}

/// A bound belongs to the mask, or does not: < instead of <=.
bool StrictComparison(Graph& graph, NodeId node) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"aten.lt.Scalar", "aten.le.Scalar"}, {"aten.le.Scalar", "aten.lt.Scalar"},
      {"aten.ge.Scalar", "aten.gt.Scalar"}, {"aten.gt.Scalar", "aten.ge.Scalar"},
      {"aten.lt.Tensor", "aten.le.Tensor"}, {"aten.le.Tensor", "aten.lt.Tensor"},
      {"aten.ge.Tensor", "aten.gt.Tensor"}, {"aten.gt.Tensor", "aten.ge.Tensor"}};
  for (const auto& [from, to] : kOthers) {
    if (graph.op(node) != from) continue;
    Rewriter(graph).SetOp(node, to);
    return true;
  }
  return false;
}

/// Two results of collectives are taken for each other: views of exchanged buffers.
bool ExchangeReceivedParts(Graph& graph, NodeId node) {
  if (!IsWait(graph, node) || graph.uses(graph.result(node)).empty()) return false;
  const ValueId a = graph.result(node);
  for (NodeId other = graph.node(node).next; other.valid(); other = graph.node(other).next) {
    if (graph.node(other).kind != NodeKind::kCall) return false;
    if (!IsWait(graph, other)) continue;
    const ValueId b = graph.result(other);
    if (!SameType(graph, a, b) || graph.uses(b).empty()) continue;
    const std::vector<int32_t> order = OrderOf(graph);
    const auto at = [&](NodeId id) { return order[static_cast<size_t>(id.index)]; };
    const std::vector<Use> of_a = UsesOf(graph, a), of_b = UsesOf(graph, b);
    const bool are_later =
        std::ranges::all_of(of_a, [&](const Use& use) { return at(use.user) > at(other); });
    if (!are_later) continue;
    Rewriter rewriter(graph);
    for (const Use use : of_a)
      rewriter.ReplaceUse(use, b);
    for (const Use use : of_b)
      rewriter.ReplaceUse(use, a);
    return true;
  }
  return false;
}

std::optional<int64_t> RowsOf(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid() || graph.module().types()[type].sizes.empty()) return std::nullopt;
  return graph.module().dims().AsConst(graph.module().types()[type].sizes[0]);
}

/// Slices of equal sizes along the first dimension, one for each rank.
std::vector<Arg> ChunksOf(Rewriter& rewriter, ValueId value, int64_t ranks, NodeId from) {
  const int64_t rows = RowsOf(rewriter.graph(), value).value_or(0) / ranks;
  std::vector<Arg> chunks;
  for (int64_t i = 0; i < ranks; ++i)
    chunks.emplace_back(CreateLike(
        rewriter, "aten.slice.Tensor",
        {Arg(value), Arg::Int(0), Arg::Int(i * rows), Arg::Int((i + 1) * rows)}, value, from));
  return chunks;
}

ValueId Joined(Rewriter& rewriter, const std::vector<Arg>& chunks, ValueId like, NodeId from) {
  const Arg list = rewriter.MakeSpan(ArgKind::kList, chunks);
  return CreateLike(rewriter, "aten.cat.default", {list, Arg::Int(0)}, like, from);
}

/// What is scattered, or sent to all, is packed for the ranks in reverse order.
bool ReverseScatter(Graph& graph, NodeId node) {
  const bool scatters = IsCollective(graph, node, CollectiveKind::kReduceScatter);
  const ValueId sent = scatters ? OperandAt(graph, node, 0) : ValueId{};
  const auto rows = sent.valid() ? RowsOf(graph, sent) : std::nullopt;
  const int64_t ranks = scatters ? GroupSizeOf(graph, node) : 1;
  if (!rows || *rows == 0 || *rows % ranks != 0) return false;
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(node);
  std::vector<Arg> chunks = ChunksOf(rewriter, sent, ranks, node);
  std::ranges::reverse(chunks);
  SetArg(rewriter, node, 0, Arg(Joined(rewriter, chunks, sent, node)));
  return true;
}

/// The part of the first rank, once for each rank, instead of the parts of all.
bool FirstOfGather(Graph& graph, NodeId node) {
  const bool gathers = IsCollective(graph, node, CollectiveKind::kAllGather);
  const NodeId wait = gathers ? OnlyWaitOf(graph, node) : NodeId{};
  const int64_t ranks = gathers ? GroupSizeOf(graph, node) : 1;
  const auto rows = wait.valid() ? RowsOf(graph, graph.result(wait)) : std::nullopt;
  if (!rows || *rows == 0 || *rows % ranks != 0) return false;
  const ValueId whole = graph.result(wait);
  const std::vector<Use> uses = UsesOf(graph, whole);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(wait);
  const ValueId first =
      CreateLike(rewriter, "aten.slice.Tensor",
                 {Arg(whole), Arg::Int(0), Arg::Int(0), Arg::Int(*rows / ranks)}, whole, node);
  const std::vector<Arg> copies(static_cast<size_t>(ranks), Arg(first));
  const ValueId repeated = Joined(rewriter, copies, whole, node);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, repeated);
  return true;
}

/// A rank's place, or its part, by an axis that it does not belong to.
bool PlaceOnOtherAxis(Graph& graph, NodeId node) {
  const bool is_index = graph.op(node) == kAxisIndexOp;
  if (!is_index && graph.op(node) != kAxisShardOp) return false;
  const size_t position = is_index ? 0 : 2;
  const Mesh mesh = MeshOf(graph);
  const auto members = mesh.GroupOf(graph.module().str(graph.args(node)[position].str()), 0);
  if (!members) return false;
  for (const MeshAxis& axis : mesh.axes()) {
    const auto others = mesh.GroupOf(axis.name, 0);
    if (!others || *others == *members || others->size() != members->size()) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, position, Arg::String(graph.module().Intern(axis.name)));
    return true;
  }
  return false;
}

// To add one: a function above and a line here.
constexpr Mutation kReportedRankMutations[] = {
    {"unreduced-use",
     "one that reads a sum over ranks reads the summand",
     UnreducedUse,
     {BugKind::kMissingCollective}},
    {"strict-comparison",
     "a bound belongs to a mask, or does not",
     StrictComparison,
     {BugKind::kWrongOperation, BugKind::kWrongMask}},
    {"exchange-received-parts",
     "two results of collectives are taken for each other",
     ExchangeReceivedParts,
     {BugKind::kExchanged}},
    {"reverse-scatter",
     "what is scattered is packed in reverse order",
     ReverseScatter,
     {BugKind::kWrongPart, BugKind::kPermuted, BugKind::kExchanged}},
    {"first-of-gather",
     "copies of the first rank's part instead of all parts",
     FirstOfGather,
     {BugKind::kWrongPart, BugKind::kMissingCollective, BugKind::kExchanged,
      BugKind::kExtraOperation}},
    {"place-on-other-axis",
     "a rank's place, or its part, by another axis",
     PlaceOnOtherAxis,
     {BugKind::kWrongGroup, BugKind::kWrongPart, BugKind::kWrongMask}},
};

}  // namespace

std::span<const Mutation> ReportedRankMutations() {
  return kReportedRankMutations;
}

}  // namespace strata::prove

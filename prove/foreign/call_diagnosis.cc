#include "prove/foreign/call_diagnosis.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/core/collectives.h"

namespace strata::prove {
namespace {

class CallDiagnosis {
 public:
  CallDiagnosis(const CompiledProgram& single, const CompiledProgram& rank,
                const CauseFinder& finder, const Lineage& lineage, const Cause& cause)
      : single_(single),
        ours_(GraphOf(rank, cause.part)),
        finder_(finder),
        lineage_(lineage),
        cause_(cause) {}

  std::optional<Diagnosis> Make() const {
    const bool is_call = ours_.node(cause_.node).kind == NodeKind::kCall;
    if (!is_call || CollectiveOf(ours_, cause_.node) || IsWait(ours_, cause_.node))
      return std::nullopt;
    return cause_.twin ? WithTwin(*cause_.twin) : WithoutTwin();
  }

 private:
  const Graph& Theirs(Part part) const { return GraphOf(single_, part); }
  const Lineage::Origin* OriginOf(ValueId operand) const {
    return lineage_.OriginOf(finder_.PlaceOf(cause_.part, operand));
  }
  static std::string Named(const Graph& graph, NodeId node) {
    return graph.node(node).kind == NodeKind::kCall
               ? fmt::format("{} ({})", graph.name(node), graph.op(node))
               : std::string(graph.name(node));
  }

  /// The same operator of one device.
  std::optional<Diagnosis> WithTwin(const Place& twin) const {
    const Graph& theirs = Theirs(twin.part);
    const std::vector<ValueId> was = theirs.operands(twin.node), is = ours_.operands(cause_.node);
    for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
      const Lineage::Origin* origin = OriginOf(is[i]);
      const NodeId expected = theirs.value(was[i]).def;
      if (origin == nullptr || origin->place.part != twin.part) continue;
      const NodeId read = origin->place.node;
      if (read == expected) continue;
      const bool is_left_out = IsMadeOf(theirs, expected, read);
      return Diagnosis{is_left_out ? BugKind::kMissingOperation : BugKind::kExchanged,
                       is_left_out ? fmt::format("{} is left out", Named(theirs, expected))
                                   : fmt::format("reads {} where {} was read",
                                                 ours_.value_name(is[i]), theirs.name(expected))};
    }
    return OtherNumber(theirs, twin.node);
  }

  /// Whether few operators make a value of one that is given.
  static bool IsMadeOf(const Graph& graph, NodeId node, NodeId source) {
    constexpr int kMaxSteps = 3;
    std::set<NodeId> layer = {node};
    for (int step = 0; step < kMaxSteps; ++step) {
      std::set<NodeId> next;
      for (const NodeId at : layer)
        for (const ValueId operand : graph.operands(at))
          next.insert(graph.value(operand).def);
      if (next.contains(source)) return true;
      layer = std::move(next);
    }
    return false;
  }

  static std::optional<double> NumberOf(const Arg& arg) {
    if (arg.kind() == ArgKind::kFloat) return arg.as_float();
    if (arg.kind() == ArgKind::kInt) return static_cast<double>(arg.as_int());
    if (arg.kind() == ArgKind::kBool) return arg.as_bool() ? 1 : 0;
    return std::nullopt;
  }

  /// Of calls whose numbers are not sizes, which a rank has its own of.
  std::optional<Diagnosis> OtherNumber(const Graph& theirs, NodeId twin) const {
    const auto was = theirs.args(twin), is = ours_.args(cause_.node);
    for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
      const auto a = NumberOf(was[i]), b = NumberOf(is[i]);
      const bool is_size = was[i].kind() == ArgKind::kInt && is[i].kind() == ArgKind::kInt &&
                           !IsArithmetic(ours_.op(cause_.node));
      if (!a || !b || *a == *b || is_size) continue;
      return Diagnosis{BugKind::kLiteral,
                       fmt::format("{} instead of {} in {}", *b, *a, ours_.name(cause_.node))};
    }
    return std::nullopt;
  }

  static bool IsArithmetic(std::string_view op) {
    constexpr std::string_view kBases[] = {"add", "sub",   "rsub", "mul",  "div",
                                           "pow", "clamp", "eq",   "ne",   "lt",
                                           "le",  "gt",    "ge",   "tril", "triu"};
    return std::ranges::find(kBases, BaseName(op)) != std::end(kBases);
  }

  /// An operator that one device has nowhere: what reads the same value there is what it replaces,
  /// unless that reads its result here.
  std::optional<Diagnosis> WithoutTwin() const {
    for (const ValueId operand : ours_.operands(cause_.node)) {
      const Lineage::Origin* origin = OriginOf(operand);
      if (origin == nullptr) continue;
      const Graph& theirs = Theirs(origin->place.part);
      const ValueId value = theirs.result(origin->place.node, origin->place.result);
      NodeId replaced;
      for (const Use use : theirs.uses(value)) {
        if (theirs.node(use.user).kind != NodeKind::kCall) continue;
        for (const NodeId reader : UsersOf(ours_, cause_.node)) {
          if (BaseName(ours_.op(reader)) != BaseName(theirs.op(use.user))) continue;
          return Diagnosis{BugKind::kExtraOperation,
                           fmt::format("{} was not there", Named(ours_, cause_.node))};
        }
        if (!replaced.valid()) replaced = use.user;
      }
      if (!replaced.valid()) continue;
      return Diagnosis{
          BugKind::kWrongOperation,
          fmt::format("{} reads {}, which {} reads on one device", Named(ours_, cause_.node),
                      theirs.value_name(value), Named(theirs, replaced))};
    }
    return std::nullopt;
  }

  const CompiledProgram& single_;
  const Graph& ours_;
  const CauseFinder& finder_;
  const Lineage& lineage_;
  const Cause& cause_;
};

/// Whether a reduction over ranks reads what is made of a node.
bool IsReducedLater(const Graph& graph, NodeId node) {
  std::set<NodeId> made = {node};
  for (NodeId next = graph.node(node).next; next.valid(); next = graph.node(next).next) {
    const std::vector<ValueId> operands = graph.operands(next);
    if (std::ranges::none_of(
            operands, [&](ValueId operand) { return made.contains(graph.value(operand).def); }))
      continue;
    if (IsCollective(graph, next, CollectiveKind::kAllReduce) ||
        IsCollective(graph, next, CollectiveKind::kReduceScatter))
      return true;
    made.insert(next);
  }
  return false;
}

}  // namespace

std::optional<Diagnosis> DiagnoseCall(const CompiledProgram& single, const CompiledProgram& rank,
                                      const CauseFinder& finder, const Lineage& lineage,
                                      const Cause& cause) {
  return CallDiagnosis(single, rank, finder, lineage, cause).Make();
}

std::optional<Diagnosis> DiagnoseEarlySum(const CompiledProgram& rank, const CauseFinder& finder,
                                          const Lineage& lineage, const Cause& cause) {
  const Graph& graph = GraphOf(rank, cause.part);
  const std::string_view base = BaseName(graph.op(cause.node));
  if (base != "add" && base != "sub") return std::nullopt;
  ValueId summand, whole;
  for (const ValueId operand : graph.operands(cause.node)) {
    const Lineage::Origin* origin = lineage.OriginOf(finder.PlaceOf(cause.part, operand));
    if (origin == nullptr) return std::nullopt;
    const bool is_partial = std::ranges::any_of(origin->relation, &Term::is_partial);
    (is_partial ? summand : whole) = operand;
  }
  if (!summand.valid() || !whole.valid() || !IsReducedLater(graph, cause.node)) return std::nullopt;
  return Diagnosis{BugKind::kPartialOperand,
                   fmt::format("every rank adds {} to its summand {} before the sum over the ranks",
                               graph.value_name(whole), graph.value_name(summand))};
}

}  // namespace strata::prove

#include "prove/mutations.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "prove/on_ranks.h"

namespace strata::prove {
namespace {

constexpr std::string_view kAxisShard = "strata.axis_shard.default";

bool IsReduction(const Graph& graph, NodeId node) {
  return IsCollective(graph, node, CollectiveKind::kAllReduce) ||
         IsCollective(graph, node, CollectiveKind::kReduceScatter);
}

bool SameType(const Graph& graph, ValueId a, ValueId b) {
  const TypeId type = graph.value(a).type;
  return type.valid() && type == graph.value(b).type;
}

/// The operand at a position, if it is one value.
ValueId OperandAt(const Graph& graph, NodeId node, size_t position) {
  const auto args = graph.args(node);
  return position < args.size() && args[position].is_value() ? args[position].value() : ValueId{};
}

void SetArg(Rewriter& rewriter, NodeId node, size_t position, Arg arg) {
  const auto slot = static_cast<uint32_t>(position);
  rewriter.SetSlot(node, rewriter.graph().node(node).args_begin + slot, arg);
}

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
  rewriter.SetOp(node, kAxisShard);
  rewriter.SetArgs(node, args, {});
  return true;
}

bool ReduceTwice(Graph& graph, NodeId node) {
  const NodeId wait = IsReduction(graph, node) ? OnlyWaitOf(graph, node) : NodeId{};
  if (!wait.valid()) return false;
  const ValueId reduced = graph.result(wait);
  std::vector<Use> uses;
  for (const Use use : graph.uses(reduced))
    uses.push_back(use);
  Rewriter rewriter(graph);
  rewriter.SetCursorAfter(wait);
  const Arg sum = Arg::String(graph.module().Intern("sum"));
  const NodeId again =
      rewriter.Create(kAllReduceOp, {Arg(reduced), sum, graph.args(node).back()}, {node});
  const NodeId done = rewriter.Create(kWaitOp, {Arg(graph.result(again))}, {wait});
  for (const NodeId created : {again, done})
    rewriter.SetType(graph.result(created), graph.value(reduced).type);
  for (const Use use : uses)
    rewriter.ReplaceUse(use, graph.result(done));
  return true;
}

bool ExchangeSumAndMean(Graph& graph, NodeId node) {
  if (!IsReduction(graph, node)) return false;
  const std::string_view reduce = ReduceOpOf(graph, node);
  if (reduce != "sum" && reduce != "avg") return false;
  const StrId other = graph.module().Intern(reduce == "sum" ? "avg" : "sum");
  Rewriter rewriter(graph);
  SetArg(rewriter, node, 1, Arg::String(other));
  return true;
}

/// Another axis, of as many ranks.
bool OtherGroup(Graph& graph, NodeId node) {
  if (!CollectiveOf(graph, node)) return false;
  const auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
  if (!mesh) return false;
  const auto members = mesh->GroupOf(GroupOf(graph, node), 0);
  if (!members) return false;
  for (const MeshAxis& axis : mesh->axes()) {
    const auto others = mesh->GroupOf(axis.name, 0);
    if (!others || *others == *members || others->size() != members->size()) continue;
    Rewriter rewriter(graph);
    SetGroup(rewriter, node, axis.name);
    return true;
  }
  return false;
}

bool DropWait(Graph& graph, NodeId node) {
  if (!IsWait(graph, node)) return false;
  Rewriter(graph).ReplaceUses(graph.result(node), graph.args(node)[0].value());
  return true;
}

/// Every rank takes the part of the first.
bool FirstPart(Graph& graph, NodeId node) {
  if (graph.op(node) != kAxisShard) return false;
  Module& module = graph.module();
  const Arg dim = graph.args(node)[1];
  const TypeId type = graph.value(graph.result(node)).type;
  if (!type.valid()) return false;
  const auto size =
      module.dims().AsConst(module.types()[type].sizes[static_cast<size_t>(dim.as_int())]);
  if (!size) return false;
  const Arg args[] = {graph.args(node)[0], dim, Arg::Int(0), Arg::Int(*size)};
  Rewriter rewriter(graph);
  rewriter.SetOp(node, "aten.slice.Tensor");
  rewriter.SetArgs(node, args, {});
  return true;
}

/// A dimension of as many elements.
bool OtherDim(Graph& graph, NodeId node) {
  constexpr std::array kOps = {kAxisShard, std::string_view("aten.slice.Tensor"),
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

bool ExchangeResults(Graph& graph, NodeId node) {
  for (size_t i = 0; i + 1 < graph.node(node).num_results; ++i) {
    const ValueId a = graph.result(node, i), b = graph.result(node, i + 1);
    if (graph.uses(a).empty() || graph.uses(b).empty() || !SameType(graph, a, b)) continue;
    std::vector<Use> of_a, of_b;
    for (const Use use : graph.uses(a))
      of_a.push_back(use);
    for (const Use use : graph.uses(b))
      of_b.push_back(use);
    Rewriter rewriter(graph);
    for (const Use use : of_a)
      rewriter.ReplaceUse(use, b);
    for (const Use use : of_b)
      rewriter.ReplaceUse(use, a);
    return true;
  }
  return false;
}

/// A value of the same type that was computed last before.
bool OtherValue(Graph& graph, NodeId node) {
  const ValueId operand = OperandAt(graph, node, 0);
  if (graph.node(node).kind != NodeKind::kCall || !operand.valid()) return false;
  for (NodeId other = graph.node(node).prev; other.valid(); other = graph.node(other).prev) {
    if (graph.node(other).num_results != 1) continue;
    const ValueId value = graph.result(other);
    if (value == operand || !SameType(graph, value, operand)) continue;
    Rewriter rewriter(graph);
    SetArg(rewriter, node, 0, Arg(value));
    return true;
  }
  return false;
}

bool DoubleLiteral(Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 5> kOps = {"aten.mul.Tensor", "aten.mul.Scalar",
                                                    "aten.div.Tensor", "aten.div.Scalar",
                                                    "aten.add.Scalar"};
  const auto args = graph.args(node);
  if (std::ranges::find(kOps, graph.op(node)) == kOps.end() || args.size() < 2) return false;
  const Arg literal = args[1];
  Rewriter rewriter(graph);
  if (literal.kind() == ArgKind::kInt) {
    SetArg(rewriter, node, 1, Arg::Int(2 * literal.as_int()));
  } else if (literal.kind() == ArgKind::kFloat) {
    SetArg(rewriter, node, 1, Arg::Float(2 * literal.as_float()));
  } else {
    return false;
  }
  return true;
}

/// The first operand passes instead: a summand, a factor or an offset is lost.
bool DropOperation(Graph& graph, NodeId node) {
  const ValueId operand = OperandAt(graph, node, 0);
  const bool is_call = graph.node(node).kind == NodeKind::kCall;
  if (!is_call || !operand.valid() || IsWait(graph, node) || CollectiveOf(graph, node))
    return false;
  if (graph.node(node).num_results != 1 || graph.value(graph.result(node)).alias_of.valid())
    return false;
  if (!SameType(graph, operand, graph.result(node))) return false;
  Rewriter(graph).ReplaceUses(graph.result(node), operand);
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
  const NodeId early = rewriter.Create("aten.add.Tensor", {Arg(summand), Arg(other)}, {add});
  rewriter.SetType(graph.result(early), graph.value(reduced).type);
  SetArg(rewriter, node, 0, Arg(graph.result(early)));
  rewriter.ReplaceUses(graph.result(add), reduced);
  return true;
}

// To add one: a function above and a line here.
constexpr Mutation kMutations[] = {
    {"drop-all-reduce", "each rank keeps its summand", DropAllReduce},
    {"keep-own-part", "a rank's part of its own summand instead of the sum", KeepOwnPart},
    {"reduce-twice", "ranks sum what is a sum already", ReduceTwice},
    {"sum-or-mean", "a mean instead of a sum, or a sum instead of a mean", ExchangeSumAndMean},
    {"other-group", "a collective of another axis of as many ranks", OtherGroup},
    {"add-before-reduce", "every rank adds what is added once", AddBeforeReduce},
    {"drop-wait", "a result of a collective is read before its end", DropWait},
    {"first-part", "every rank takes the part of the first", FirstPart},
    {"other-dim", "another dimension of as many elements", OtherDim},
    {"exchange-operands", "b - a instead of a - b", ExchangeOperands},
    {"exchange-pieces", "a bucket is packed in another order", ExchangePieces},
    {"exchange-results", "a bucket is unpacked in another order", ExchangeResults},
    {"other-value", "an earlier value of the same type is read", OtherValue},
    {"double-literal", "twice the factor or divisor", DoubleLiteral},
    {"drop-operation", "a summand, factor or function is left out", DropOperation},
};

std::set<StableId> IdsOf(const Graph& graph) {
  std::set<StableId> ids;
  for (const NodeId node : graph.nodes())
    ids.insert(graph.node(node).stable_id);
  return ids;
}

/// Names of nodes at which a first finding names the site: those that the mutation made or edited,
/// what the graph returns instead of another value, and what reads them up to the first node that
/// the graph before the pass has, too.
std::set<std::string> NamesNear(const Graph& before, const Graph& after, const Graph& mutant,
                                NodeId site) {
  const std::set<StableId> known = IdsOf(before), unedited = IdsOf(after);
  std::vector<NodeId> work;
  for (const NodeId node : mutant.nodes()) {
    const bool is_new = !unedited.contains(mutant.node(node).stable_id);
    const bool is_edited = is_new || mutant.operands(node) != after.operands(node);
    if (is_edited || node == site) work.push_back(node);
  }
  std::set<std::string> names;
  for (const NodeId node : work)
    names.emplace(mutant.name(node));
  const std::vector<ValueId> from = after.operands(after.output()),
                             to = mutant.operands(mutant.output());
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
    if (from[i] != to[i]) names.emplace(mutant.name(mutant.value(to[i]).def));
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    for (const NodeId user : UsersOf(mutant, node)) {
      const bool is_first = names.emplace(mutant.name(user)).second;
      if (is_first && !known.contains(mutant.node(user).stable_id)) work.push_back(user);
    }
  }
  return names;
}

}  // namespace

std::span<const Mutation> Mutations() {
  return kMutations;
}

std::optional<MutantResult> TryMutant(const Graph& before, const Graph& after,
                                      const Mutation& mutation, NodeId site,
                                      const ProofOptions& options) {
  const std::unique_ptr<Module> copy = after.module().Clone();
  Graph& mutant = copy->graph(after.id());
  if (!mutation.apply(mutant, site)) return std::nullopt;
  const Proof proof = ProvePass(before, mutant, options);
  if (proof.verdict == Verdict::kUnproven) {
    return MutantResult{.outcome = MutantOutcome::kRefused, .is_near = false, .node = proof.reason};
  }
  if (proof.verdict == Verdict::kDiffers) {
    const std::string& node = proof.findings.front().node;
    return MutantResult{.outcome = MutantOutcome::kCaught,
                        .is_near = NamesNear(before, after, mutant, site).contains(node),
                        .node = node};
  }
  const Proof same = ProveOnRanks(after, mutant, {.seed = options.seed + 1, .stable_ids = false});
  return MutantResult{.outcome = same.verdict == Verdict::kProven ? MutantOutcome::kEquivalent
                                                                  : MutantOutcome::kEscaped,
                      .is_near = false,
                      .node = ""};
}

}  // namespace strata::prove

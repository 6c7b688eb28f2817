#include "prove/mutations/mutations.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "prove/diagnosis/difference.h"
#include "prove/mutations/edits.h"
#include "prove/prove_pass.h"
#include "prove/static/placement_check.h"

namespace strata::prove {
namespace {

std::set<StableId> IdsOf(const Graph& graph) {
  std::set<StableId> ids;
  for (const NodeId node : graph.nodes())
    ids.insert(graph.node(node).stable_id);
  return ids;
}

/// What a node reads, in a way that graphs of other node ids share.
std::vector<std::pair<StableId, size_t>> Reads(const Graph& graph, NodeId node) {
  std::vector<std::pair<StableId, size_t>> reads;
  for (const ValueId operand : graph.operands(node)) {
    const Node& def = graph.node(graph.value(operand).def);
    reads.emplace_back(def.stable_id, static_cast<size_t>(operand.index - def.first_result.index));
  }
  return reads;
}

/// An edit of `after`, which is one of what a pass makes of `before`.
struct Mutant {
  const Graph& before;
  const Graph& after;
  const Graph& graph;
  std::string site;  ///< the name of the node in `graph`
};

/// Nodes that the mutation made or edited; users of what new ones overwrite, and what lost ones
/// wrote to.
std::vector<NodeId> EditedNodes(const Mutant& mutant) {
  std::map<StableId, NodeId> unedited;
  for (const NodeId node : mutant.after.nodes())
    unedited.emplace(mutant.after.node(node).stable_id, node);
  const Graph& graph = mutant.graph;
  std::vector<NodeId> edited;
  std::set<StableId> kept;
  for (const NodeId node : graph.nodes()) {
    kept.insert(graph.node(node).stable_id);
    const auto was = unedited.find(graph.node(node).stable_id);
    const bool is_new = was == unedited.end();
    if (is_new || graph.name(node) == mutant.site ||
        Reads(graph, node) != Reads(mutant.after, was->second))
      edited.push_back(node);
    if (!is_new || !TraitsOf(graph.op(node)).mutates) continue;
    for (const NodeId user : UsersOf(graph, graph.value(graph.operands(node)[0]).def))
      edited.push_back(user);
  }
  for (const auto& [id, node] : unedited) {
    if (kept.contains(id) || !TraitsOf(mutant.after.op(node)).mutates) continue;
    const ValueId written = OwnerOf(mutant.after, mutant.after.operands(node)[0]);
    const NodeId owner =
        NodeWithId(graph, mutant.after.node(mutant.after.value(written).def).stable_id);
    if (owner.valid()) edited.push_back(owner);
  }
  return edited;
}

/// Names of nodes at which a first finding names the site: those that the mutation made or edited,
/// what the graph returns instead of another value, and what reads them up to the first node that
/// the graph before the pass has, too.
std::set<std::string> NamesNear(const Mutant& mutant) {
  const std::set<StableId> known = IdsOf(mutant.before);
  const Graph& graph = mutant.graph;
  std::vector<NodeId> work = EditedNodes(mutant);
  std::set<std::string> names;
  for (const NodeId node : work)
    names.emplace(graph.name(node));
  const auto from = Reads(mutant.after, mutant.after.output()), to = Reads(graph, graph.output());
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
    if (from[i] != to[i])
      names.emplace(graph.name(graph.value(graph.operands(graph.output())[i]).def));
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    for (const NodeId user : UsersOf(graph, node)) {
      const bool is_first = names.emplace(graph.name(user)).second;
      if (is_first && !known.contains(graph.node(user).stable_id)) work.push_back(user);
    }
  }
  return names;
}

/// What a proof with rounding says of a mutant that computes what `after` does. The pass may change
/// precision itself, so the mutant is compared with its result.
MutantResult RoundedMutant(const Mutant& mutant, ProofOptions options) {
  options.lists_precision = true;
  const Proof proof = ProvePass(mutant.after, mutant.graph, options);
  if (proof.precision.empty())
    return {.outcome = MutantOutcome::kEquivalent, .diagnosis = {}, .node = "", .what = ""};
  const PrecisionChange& first = proof.precision.front();
  return {.outcome = MutantOutcome::kCaught,
          .is_near = NamesNear(mutant).contains(first.node),
          .is_class_right = true,
          .diagnosis = {.kind = BugKind::kPrecision, .reason = first.what},
          .node = first.node,
          .what = first.what};
}

/// Whether every rank returns, and writes to its inputs, the same: for any inputs, or else for all
/// that ranks can have, whose replicas are equal.
bool IsEquivalent(const Mutant& mutant, uint64_t seed) {
  return std::ranges::any_of(std::array{false, true}, [&](bool has_replicas) {
    const ProofOptions options{.seed = seed, .stable_ids = false, .has_replicas = has_replicas};
    return ProvePass(mutant.after, mutant.graph, options).verdict == Verdict::kProven;
  });
}

/// Erases what was read in `after` and is not read any more, as if the program was written so.
void EraseUnread(const Graph& after, Graph& mutant) {
  std::set<StableId> read;
  for (const NodeId node : after.nodes())
    if (!UsersOf(after, node).empty()) read.insert(after.node(node).stable_id);
  const std::vector<NodeId> nodes = mutant.nodes().Snapshot();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_call = mutant.node(*node).kind == NodeKind::kCall;
    const bool was_read = read.contains(mutant.node(*node).stable_id);
    if (!is_call || !was_read || Mutates(mutant, *node) || !UsersOf(mutant, *node).empty())
      continue;
    Rewriter(mutant).Erase(*node);
  }
}

/// What evaluation says of a mutant.
MutantResult Evaluated(const Mutant& mutant, const Mutation& mutation,
                       const ProofOptions& options) {
  const Proof proof = ProvePass(mutant.before, mutant.graph, options);
  if (proof.verdict == Verdict::kUnproven) {
    return MutantResult{
        .outcome = MutantOutcome::kRefused, .diagnosis = {}, .node = proof.reason, .what = ""};
  }
  if (proof.verdict == Verdict::kDiffers) {
    const Finding& first = proof.findings.front();
    const BugKind kind = first.diagnosis.kind;
    const bool is_right =
        kind != BugKind::kOther && std::ranges::find(mutation.kinds, kind) != mutation.kinds.end();
    return MutantResult{.outcome = MutantOutcome::kCaught,
                        .is_near = NamesNear(mutant).contains(first.node),
                        .is_class_right = is_right,
                        .diagnosis = first.diagnosis,
                        .node = first.node,
                        .what = first.what};
  }
  if (mutation.kinds[0] == BugKind::kPrecision) return RoundedMutant(mutant, options);
  return MutantResult{.outcome = IsEquivalent(mutant, options.seed + 1) ? MutantOutcome::kEquivalent
                                                                        : MutantOutcome::kEscaped,
                      .diagnosis = {},
                      .node = "",
                      .what = ""};
}

/// Ranks that wait for each other: their calls are not the same any more.
MutantResult Unmatched(const Graph& part, const Graph& mutant, NodeId site,
                       const JoinedStages& joined) {
  std::set<std::string> names;
  for (const std::string& name : NamesNear({part, part, mutant, std::string(part.name(site))}))
    names.insert(fmt::format("{}/{}", part.name_text(), name));
  const bool is_near = names.contains(joined.unmatched_node) || names.contains(joined.other_node);
  return {.outcome = MutantOutcome::kCaught,
          .is_near = is_near,
          .is_class_right = is_near,
          .diagnosis = {.kind = BugKind::kCollectiveOrder, .reason = joined.unmatched_call},
          .node = joined.unmatched_node,
          .what = joined.unmatched_call};
}

}  // namespace

std::span<const Mutation> Mutations() {
  static const std::vector<Mutation> kAll = [] {
    std::vector<Mutation> all;
    for (const auto some : {CollectiveMutations(), PartMutations(), ValueMutations(),
                            MemoryMutations(), OperatorMutations(), ReportedValueMutations(),
                            ReportedRankMutations(), StageMutations(), PrecisionMutations()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return kAll;
}

std::optional<MutantResult> TryMutant(const Graph& before, const Graph& after,
                                      const Mutation& mutation, NodeId site,
                                      const ProofOptions& options) {
  const std::unique_ptr<Module> copy = after.module().Clone();
  Graph& mutant = copy->graph(after.id());
  if (!mutation.apply(mutant, site)) return std::nullopt;
  if (site.index % 2 == 0) EraseUnread(after, mutant);
  MutantResult result =
      Evaluated({before, after, mutant, std::string(after.name(site))}, mutation, options);
  const PlacementCheck check = CheckPlacements(before, mutant);
  result.is_checked_by_rules = check.nodes > 0;
  result.is_refuted_by_rules = !check.findings.empty();
  return result;
}

Result<CutMutants> CutMutants::Make(const StageCut& cut) {
  STRATA_TRY(JoinedStages joined, JoinStages(cut));
  return CutMutants(cut, std::move(joined));
}

std::optional<MutantResult> CutMutants::Try(size_t part, const Mutation& mutation, NodeId site,
                                            const ProofOptions& options) const {
  const Graph& original = *cut_.parts[part].graph;
  const std::unique_ptr<Module> copy = original.module().Clone();
  for (const StagePart& other : cut_.parts)
    copy->ReserveStableIds(other.graph->module().next_stable_id());
  Graph& graph = copy->graph(original.id());
  if (!mutation.apply(graph, site)) return std::nullopt;
  std::vector<StagePart> parts(cut_.parts.begin(), cut_.parts.end());
  parts[part].graph = &graph;
  StageCut mutated = cut_;
  mutated.parts = parts;
  const Result<JoinedStages> joined = JoinStages(mutated);
  if (!joined) {
    return MutantResult{.outcome = MutantOutcome::kRefused,
                        .diagnosis = {},
                        .node = joined.error().message(),
                        .what = ""};
  }
  if (!joined->unmatched_node.empty()) return Unmatched(original, graph, site, *joined);
  return Evaluated({joined->module->graph(joined->whole), joined_.graph(), joined->graph(),
                    fmt::format("{}/{}", original.name_text(), original.name(site))},
                   mutation, options);
}

}  // namespace strata::prove

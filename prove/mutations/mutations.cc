#include "prove/mutations/mutations.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/mutations/edits.h"
#include "prove/on_ranks.h"
#include "prove/static/placement_check.h"

namespace strata::prove {
namespace {

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
    if (!is_new || !TraitsOf(mutant.op(node)).mutates) continue;
    for (const NodeId user : UsersOf(mutant, mutant.value(mutant.operands(node)[0]).def))
      work.push_back(user);  // of what is overwritten
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

/// What a proof with rounding says of a mutant that computes what `after` does. The pass may change
/// precision itself, so the mutant is compared with its result.
MutantResult RoundedMutant(const Graph& before, const Graph& after, const Graph& mutant,
                           NodeId site, ProofOptions options) {
  options.lists_precision = true;
  const Proof proof = ProvePass(after, mutant, options);
  if (proof.precision.empty())
    return {.outcome = MutantOutcome::kEquivalent, .diagnosis = {}, .node = "", .what = ""};
  const PrecisionChange& first = proof.precision.front();
  return {.outcome = MutantOutcome::kCaught,
          .is_near = NamesNear(before, after, mutant, site).contains(first.node),
          .is_class_right = true,
          .diagnosis = {.kind = BugKind::kPrecision, .reason = first.what},
          .node = first.node,
          .what = first.what};
}

/// What evaluation says of a mutant.
MutantResult Evaluated(const Graph& before, const Graph& after, const Graph& mutant,
                       const Mutation& mutation, NodeId site, const ProofOptions& options) {
  const Proof proof = ProvePass(before, mutant, options);
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
                        .is_near = NamesNear(before, after, mutant, site).contains(first.node),
                        .is_class_right = is_right,
                        .diagnosis = first.diagnosis,
                        .node = first.node,
                        .what = first.what};
  }
  if (mutation.kinds[0] == BugKind::kPrecision)
    return RoundedMutant(before, after, mutant, site, options);
  const Proof same = ProvePass(after, mutant, {.seed = options.seed + 1, .stable_ids = false});
  return MutantResult{.outcome = same.verdict == Verdict::kProven ? MutantOutcome::kEquivalent
                                                                  : MutantOutcome::kEscaped,
                      .diagnosis = {},
                      .node = "",
                      .what = ""};
}

}  // namespace

std::span<const Mutation> Mutations() {
  static const std::vector<Mutation> kAll = [] {
    std::vector<Mutation> all;
    for (const auto some : {CollectiveMutations(), PartMutations(), ValueMutations(),
                            MemoryMutations(), PrecisionMutations()})
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
  MutantResult result = Evaluated(before, after, mutant, mutation, site, options);
  const PlacementCheck check = CheckPlacements(before, mutant);
  result.is_checked_by_rules = check.nodes > 0;
  result.is_refuted_by_rules = !check.findings.empty();
  return result;
}

}  // namespace strata::prove

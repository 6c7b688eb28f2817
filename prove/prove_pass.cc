#include "prove/prove_pass.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "prove/evaluation/rounding.h"
#include "prove/layers/fewer_layers.h"
#include "prove/layers/unchanged_calls.h"
#include "prove/lowering.h"
#include "prove/on_ranks.h"
#include "prove/precision.h"
#include "prove/sizes/reduce.h"

namespace strata::prove {
namespace {

Proof ProveOnce(const Graph& before, const Graph& after, const ProofOptions& options) {
  if (!IsLowered(after)) return Prove(before, after, options);
  return IsLowered(before) ? ProveOnRanks(before, after, options)
                           : ProveLowering(before, after, options);
}

/// Exactly, and then with rounding: what differs only then is a change of precision.
Proof ProveWhole(const Graph& before, const Graph& after, const ProofOptions& options) {
  Proof proof = ProveOnce(before, after, options);
  const bool lists = options.lists_precision && proof.verdict == Verdict::kProven;
  if (!lists || !(HasNarrowValues(before) || HasNarrowValues(after))) return proof;
  ProofOptions rounding = options;
  rounding.rounds = true;
  rounding.max_findings = SIZE_MAX;
  proof.precision = PrecisionChanges(before, after, ProveOnce(before, after, rounding).findings,
                                     options.stable_ids);
  return proof;
}

/// What a proof on reduced sizes cannot say: an operator may fail because of them alone.
void SayUncertain(Proof& proof) {
  const auto failed = std::ranges::find_if(proof.findings, [](const Finding& finding) {
    return finding.diagnosis.kind == BugKind::kInvalid;
  });
  if (failed == proof.findings.end()) return;
  proof.verdict = Verdict::kUnproven;
  proof.reason = fmt::format("on reduced sizes, {} {}", failed->node, failed->what);
  proof.findings.clear();
}

/// With each of the pairs of small sizes: all have to be proven.
Proof ProveWithAll(const std::vector<ReducedPair>& pairs, const ProofOptions& options) {
  Proof all;
  for (const ReducedPair& pair : pairs) {
    Proof proof = ProveWhole(*pair.before, *pair.after, options);
    SayUncertain(proof);
    proof.reduced_sizes = pair.sizes;
    proof.reduced_sizes.insert(all.reduced_sizes.begin(), all.reduced_sizes.end());
    proof.values += all.values;
    proof.evaluations += all.evaluations;
    proof.not_kept += all.not_kept;
    all = std::move(proof);
    if (all.verdict != Verdict::kProven) break;
  }
  return all;
}

/// With one set of small sizes if operators fail with two, as they may because of small sizes.
Result<Proof> ProveReduced(const Graph& before, const Graph& after, ReduceOptions sizes,
                           const ProofOptions& options, bool& has_numbers) {
  STRATA_TRY(std::vector<ReducedPair> pairs, ReduceOnceOrTwice(before, after, sizes));
  Proof proof = ProveWithAll(pairs, options);
  if (pairs.size() > 1 && proof.verdict == Verdict::kUnproven) {
    sizes.max_products = std::numeric_limits<double>::infinity();
    auto once = ReduceOnceOrTwice(before, after, sizes);
    if (once && once->size() == 1) {
      pairs = *std::move(once);
      proof = ProveWithAll(pairs, options);
    }
  }
  has_numbers = std::ranges::any_of(pairs, &ReducedPair::has_numbers);
  return proof;
}

/// A number that equals a size may be one or not: it may be proven either way.
Proof ProveReducedBy(SizeEquality equality, const Graph& before, const Graph& after,
                     const ProofOptions& options) {
  ProofOptions alone = options;
  alone.makers.clear();  // which have other sizes
  alone.checks_sizes = true;
  Proof proof;
  for (const Numbers numbers : {Numbers::kNewAsSizes, Numbers::kKeep, Numbers::kAsSizes}) {
    const ReduceOptions sizes = {.equality = equality,
                                 .numbers = numbers,
                                 .stable_ids = options.stable_ids,
                                 .shared = {},
                                 .max_products = options.max_products};
    bool has_numbers = false;
    Result<Proof> reduced = ProveReduced(before, after, sizes, alone, has_numbers);
    if (!reduced) {
      proof = Proof();
      proof.verdict = Verdict::kUnproven;
      proof.reason = fmt::format("too large to evaluate, and its sizes cannot be reduced: {}",
                                 reduced.error().message());
      return proof;
    }
    proof = *std::move(reduced);
    if (proof.verdict != Verdict::kDiffers || !has_numbers) break;
  }
  return proof;
}

/// Calls of operators that the evaluation of a graph takes, on all its ranks.
int64_t CallsOf(const Graph& graph) {
  const auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
  return graph.num_nodes() * (IsLowered(graph) && mesh ? mesh->num_ranks() : 1);
}

bool IsLarge(const Graph& before, const Graph& after, const ProofOptions& options) {
  return options.stable_ids && std::max(CallsOf(before), CallsOf(after)) > options.max_calls;
}

bool IsDecided(const Proof& proof) {
  return proof.verdict == Verdict::kProven && proof.not_kept == 0;
}

/// A part of two graphs, or both whole.
struct Attempt {
  const Graph* before;
  const Graph* after;
  int64_t unchanged = 0;
};

/// Without what the pass left as it was, and with it, in this order. With small sizes if the graphs
/// are large: what operators do not say of their sizes may make a legal program an illegal one, and
/// where all sizes of a number are one, it stays legal. But such sizes are large ones, so both are
/// tried with others first.
Proof ProveParts(const Graph& before, const Graph& after, bool cuts, const ProofOptions& options) {
  std::vector<Attempt> attempts;
  std::optional<ChangedCalls> changed;
  if (cuts && IsLowered(before) == IsLowered(after)) changed = WithoutUnchangedCalls(before, after);
  if (changed) attempts.push_back({changed->pair.before, changed->pair.after, changed->left_out});
  attempts.push_back({&before, &after});
  Proof whole;
  for (const SizeEquality equality : {SizeEquality::kByDimension, SizeEquality::kByNumber}) {
    for (const Attempt& attempt : attempts) {
      const bool is_whole = attempt.before == &before;
      ProofOptions of_attempt = options;
      if (!is_whole) of_attempt.max_findings = 1;  // it decides only if there are none
      const bool is_reduced = NeedsReduction(*attempt.before) || NeedsReduction(*attempt.after);
      if (!is_reduced && equality == SizeEquality::kByNumber) continue;
      Proof proof = is_reduced
                        ? ProveReducedBy(equality, *attempt.before, *attempt.after, of_attempt)
                        : ProveWhole(*attempt.before, *attempt.after, of_attempt);
      proof.unchanged = attempt.unchanged;
      if (is_whole ? proof.verdict == Verdict::kProven : IsDecided(proof)) return proof;
      const bool is_first = equality == SizeEquality::kByDimension;
      if (is_whole && (is_first || proof.verdict != Verdict::kUnproven)) whole = std::move(proof);
    }
  }
  return whole;
}

}  // namespace

Proof ProvePass(const Graph& before, const Graph& after, const ProofOptions& options) {
  const bool is_large = IsLarge(before, after, options);
  if (is_large) {
    if (const auto fewer = WithoutEqualLayers(before, after)) {
      ProofOptions of_fewer = options;
      of_fewer.max_findings = 1;  // it decides only if there are none
      Proof proof = ProveParts(*fewer->pair.before, *fewer->pair.after, true, of_fewer);
      proof.layers = fewer->layers;
      proof.layers_left_out = fewer->left_out;
      if (IsDecided(proof)) return proof;
      // What was known of values of the others may be missing: only all layers decide.
    }
  }
  return ProveParts(before, after, is_large, options);
}

}  // namespace strata::prove

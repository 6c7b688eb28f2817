#include "prove/on_ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "passes/placement/placement.h"
#include "prove/chunks.h"
#include "prove/evaluation/bounds.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/evaluation/rounding.h"
#include "prove/layers/fewer_layers.h"
#include "prove/layers/unchanged_calls.h"
#include "prove/lowering.h"
#include "prove/sizes/reduce.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// One for each rank.
using RankValues = std::vector<Values>;

std::vector<Value> Copies(const std::vector<Value>& values) {
  std::vector<Value> copies;
  for (const Value& value : values)
    copies.push_back(CopyOf(value));
  return copies;
}

class RankProver {
 public:
  RankProver(const Graph& before, const Graph& after, const Mesh& mesh, const ProofOptions& options)
      : before_(before), after_(after), mesh_(mesh), options_(options) {}

  Result<Proof> Run() {
    const std::vector<NodeId> from = before_.placeholders(), to = after_.placeholders();
    if (from.size() != to.size())
      return Error(ErrorCode::kUnsupported, "{} inputs become {}", from.size(), to.size());
    STRATA_RETURN_IF_ERROR(EvaluateInsideBounds(
        before_, options_.seed, [&](uint64_t seed) { return EvaluateBefore(seed); }));
    RankEvaluator second(after_, mesh_, seed_, options_.rounds);
    second.SeedGenerators();
    const Result<RankValues> actual = second.Run(
        inputs_, [&](NodeId node, std::span<Values> results) { CheckNode(node, results); });
    if (actual) {
      CheckOutputs(expected_, *actual);
      for (size_t i = 0; i < to.size(); ++i) {
        const auto difference = DifferenceAt(written_, inputs_, i);
        if (difference)
          Add(to[i], from[i], "after the graph: " + *difference, FactsAt(written_, inputs_, i));
      }
    } else {
      const auto was_there = [&](StableId id) { return kept_.contains(id); };
      STRATA_RETURN_IF_ERROR(AddFailure(before_, after_, second.failed(), actual.error(), options_,
                                        was_there, proof_));
    }
    proof_.evaluations += second.evaluations();
    opaque_.merge(second.opaque());
    proof_.opaque.assign(opaque_.begin(), opaque_.end());
    if (!proof_.findings.empty()) proof_.verdict = Verdict::kDiffers;
    CheckOpaqueCalls(calls_before_, second.opaque_calls(), proof_);
    return std::move(proof_);
  }

 private:
  struct Kept {
    NodeId node;
    RankValues results;
  };

  /// How many numbers are at their bounds.
  Result<int64_t> EvaluateBefore(uint64_t seed) {
    seed_ = seed;
    kept_.clear();
    words_ = 0;
    proof_.not_kept = 0;
    STRATA_TRY(inputs_,
               InputsOnRanks(before_, mesh_, seed, options_.makers, options_.has_replicas));
    written_.clear();
    for (const Values& inputs : inputs_)
      written_.push_back(Copies(inputs));
    RankEvaluator first(before_, mesh_, seed, options_.rounds);
    first.SeedGenerators();
    STRATA_TRY(expected_, first.Run(written_, [&](NodeId node, std::span<Values> results) {
      if (options_.stable_ids) Keep(node, results);
    }));
    proof_.evaluations = first.evaluations();
    opaque_ = first.opaque();
    calls_before_ = first.opaque_calls();
    return first.at_bound();
  }

  void Keep(NodeId node, std::span<const Values> results) {
    if (words_ > options_.max_kept_words) {
      ++proof_.not_kept;
      return;
    }
    Kept kept{.node = node, .results = {}};
    for (const Values& values : results) {
      kept.results.push_back(Copies(values));
      for (const Value& value : values)
        if (const auto* tensor = std::get_if<Tensor>(&value))
          words_ += static_cast<size_t>(tensor->numel());
    }
    kept_[before_.node(node).stable_id] = std::move(kept);
  }

  /// How value `i` of the first rank that differs does so; none: all ranks agree.
  std::optional<std::string> DifferenceAt(std::span<const Values> expected,
                                          std::span<const Values> actual, size_t i) {
    ++proof_.values;
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      if (SameValue(expected[rank][i], actual[rank][i])) continue;
      return fmt::format("rank {}: {}", rank,
                         DescribeDifference(expected[rank][i], actual[rank][i]));
    }
    return std::nullopt;
  }

  void CheckNode(NodeId node, std::span<Values> results) {
    const auto found = kept_.find(after_.node(node).stable_id);
    if (found == kept_.end()) {
      CheckJoined(node, results);
      return;
    }
    const Kept& kept = found->second;
    if (IsNewChunk(before_, kept.node, after_, node)) return;
    for (size_t i = 0; i < std::min(kept.results[0].size(), results[0].size()); ++i)
      CheckResult(node, results, i, kept, i);
  }

  void CheckJoined(NodeId node, std::span<Values> results) {
    const auto kept_of = [&](StableId id) {
      const auto found = kept_.find(id);
      return found == kept_.end() ? NodeId{} : found->second.node;
    };
    if (const auto whole = JoinedWhole(before_, after_, node, kept_of)) {
      const StableId id = before_.node(whole->original).stable_id;
      CheckResult(node, results, 0, kept_.at(id), whole->result);
    }
  }

  /// Result `i` of `node` is result `expected` of what was kept.
  void CheckResult(NodeId node, std::span<Values> results, size_t i, const Kept& kept,
                   size_t expected) {
    RankValues wanted, actual;
    for (size_t rank = 0; rank < results.size(); ++rank) {
      wanted.push_back({kept.results[rank][expected]});
      actual.push_back({results[rank][i]});
    }
    const auto difference = DifferenceAt(wanted, actual, 0);
    if (!difference) return;
    Add(node, kept.node, *difference, FactsAt(wanted, actual, 0));
    for (size_t rank = 0; rank < results.size(); ++rank)
      SetRight(wanted[rank][0], results[rank][i]);
  }

  /// What reads the value is judged on the expected one.
  static void SetRight(const Value& expected, const Value& actual) {
    const auto* a = std::get_if<Tensor>(&expected);
    const auto* b = std::get_if<Tensor>(&actual);
    if (a != nullptr && b != nullptr && a->sizes() == b->sizes() && a->domain() == b->domain())
      b->Write(a->Read());
  }

  void CheckOutputs(const RankValues& expected, const RankValues& actual) {
    if (expected[0].size() != actual[0].size()) {
      AddFound(after_.output(), before_.name(before_.output()),
               fmt::format("{} outputs, expected {}", actual[0].size(), expected[0].size()),
               {.kind = BugKind::kContract, .reason = ""});
      return;
    }
    const std::vector<ValueId> from = before_.operands(before_.output()),
                               to = after_.operands(after_.output());
    for (size_t i = 0; i < expected[0].size(); ++i) {
      if (const auto difference = DifferenceAt(expected, actual, i)) {
        Add(after_.value(to[i]).def, before_.value(from[i]).def,
            fmt::format("output {}: {}", i, *difference), FactsAt(expected, actual, i));
      }
    }
  }

  /// What more there is to find is not listed, so it needs no diagnosis.
  bool IsFull() const { return proof_.findings.size() >= options_.max_findings; }

  ValueFacts FactsAt(std::span<const Values> expected, std::span<const Values> actual,
                     size_t i) const {
    if (IsFull()) return {};
    std::vector<Tensor> wanted, parts;
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      const auto* a = std::get_if<Tensor>(&expected[rank][i]);
      const auto* b = std::get_if<Tensor>(&actual[rank][i]);
      if (a == nullptr || b == nullptr) return {};
      wanted.push_back(*a);
      parts.push_back(*b);
    }
    return FactsOf(wanted, parts, mesh_);
  }

  /// `expected`: of the graph before.
  void Add(NodeId node, NodeId expected, std::string what, const ValueFacts& facts) {
    if (IsFull()) return;
    AddFound(node, before_.name(expected), std::move(what),
             options_.stable_ids ? Diagnose(before_, expected, after_, node, facts) : Diagnosis());
  }
  void AddFound(NodeId node, std::string_view reference, std::string what, Diagnosis diagnosis) {
    const auto was_there = [&](StableId id) { return kept_.contains(id); };
    AddFinding(after_, node, reference, std::move(what), std::move(diagnosis), options_, was_there,
               proof_);
  }

  const Graph& before_;
  const Graph& after_;
  const Mesh& mesh_;
  const ProofOptions& options_;
  std::map<StableId, Kept> kept_;
  size_t words_ = 0;
  // Of the last evaluation of `before`.
  uint64_t seed_ = 0;
  RankValues inputs_, written_;  // before it, and after it
  RankValues expected_;          // outputs
  std::set<std::string> opaque_;
  OpaqueCalls calls_before_;
  Proof proof_;
};

}  // namespace

Proof ProveOnRanks(const Graph& before, const Graph& after, const ProofOptions& options) {
  const auto unproven = [](const Error& error) {
    Proof proof;
    proof.verdict = Verdict::kUnproven;
    proof.reason = error.message();
    return proof;
  };
  const auto mesh = MeshToEvaluate(after);
  if (!mesh) return unproven(mesh.error());
  auto proof = RankProver(before, after, *mesh, options).Run();
  return proof ? *std::move(proof) : unproven(proof.error());
}

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

/// A number that equals a size may be one or not: it may be proven either way.
Proof ProveReducedBy(SizeEquality equality, const Graph& before, const Graph& after,
                     const ProofOptions& options) {
  Proof proof;
  for (const Numbers numbers : {Numbers::kNewAsSizes, Numbers::kKeep, Numbers::kAsSizes}) {
    const auto pair =
        Reduce(before, after,
               {.equality = equality, .numbers = numbers, .stable_ids = options.stable_ids});
    if (!pair) {
      proof = Proof();
      proof.verdict = Verdict::kUnproven;
      proof.reason = fmt::format("too large to evaluate, and its sizes cannot be reduced: {}",
                                 pair.error().message());
      return proof;
    }
    ProofOptions alone = options;
    alone.makers.clear();  // which have other sizes
    alone.checks_sizes = true;
    proof = ProveWhole(*pair->before, *pair->after, alone);
    proof.reduced_sizes = pair->sizes;
    SayUncertain(proof);
    if (proof.verdict != Verdict::kDiffers || !pair->has_numbers) break;
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

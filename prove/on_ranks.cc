#include "prove/on_ranks.h"

#include <algorithm>
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
#include "prove/evaluation/kept_results.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/evaluation/shared_calls.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// One for each rank.
using RankValues = std::vector<Values>;

class RankProver {
 public:
  RankProver(const Graph& before, const Graph& after, const Mesh& mesh, const ProofOptions& options)
      : before_(before),
        after_(after),
        mesh_(mesh),
        options_(options),
        kept_(before, options.max_kept_words) {}

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
      const auto was_there = [&](StableId id) { return kept_.Find(id) != nullptr; };
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
  using Kept = KeptResults::Results;

  /// How many numbers are at their bounds.
  Result<int64_t> EvaluateBefore(uint64_t seed) {
    seed_ = seed;
    kept_.Clear();
    STRATA_TRY(inputs_,
               InputsOnRanks(before_, mesh_, seed, options_.makers, options_.has_replicas));
    written_.clear();
    for (const Values& inputs : inputs_)
      written_.push_back(CopiesOfWritten(inputs));
    RankEvaluator first(before_, mesh_, seed, options_.rounds);
    first.SeedGenerators();
    STRATA_TRY(expected_, first.Run(written_, [&](NodeId node, std::span<Values> results) {
      if (options_.stable_ids) kept_.Keep(node, results);
    }));
    proof_.evaluations = first.evaluations();
    opaque_ = first.opaque();
    calls_before_ = first.opaque_calls();
    return first.at_bound();
  }

  /// The inputs of a rank, with memory of their own if one of the graphs writes to it.
  Values CopiesOfWritten(const Values& inputs) const {
    const std::vector<NodeId> from = before_.placeholders(), to = after_.placeholders();
    Values copies;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_written = writes_before_.IsWritten(from[i]) || writes_after_.IsWritten(to[i]);
      copies.push_back(is_written ? CopyOf(inputs[i]) : inputs[i]);
    }
    return copies;
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
    const Kept* kept = kept_.Find(after_.node(node).stable_id);
    if (kept == nullptr) {
      CheckJoined(node, results);
    } else if (!IsNewChunk(before_, kept->node, after_, node)) {
      for (size_t i = 0; i < std::min(NumResults(*kept), results[0].size()); ++i)
        CheckResult(node, results, i, *kept, i);
    }
  }

  void CheckJoined(NodeId node, std::span<Values> results) {
    const auto kept_of = [&](StableId id) {
      const Kept* kept = kept_.Find(id);
      return kept == nullptr ? NodeId{} : kept->node;
    };
    if (const auto whole = JoinedWhole(before_, after_, node, kept_of)) {
      const StableId id = before_.node(whole->original).stable_id;
      CheckResult(node, results, 0, *kept_.Find(id), whole->result);
    }
  }

  /// Result `i` of `node` is result `expected` of what was kept.
  void CheckResult(NodeId node, std::span<Values> results, size_t i, const Kept& kept,
                   size_t expected) {
    if (is_wrong_) {
      ++proof_.not_kept;
      return;
    }
    if (kept.values.empty()) {
      ++proof_.values;
      if (IsEqual(kept, expected, results, i)) return;
      Add(node, kept.node, std::string(kOtherElements), {});
      is_wrong_ = true;
      return;
    }
    RankValues wanted, actual;
    for (size_t rank = 0; rank < results.size(); ++rank) {
      wanted.push_back({kept.values[rank][expected]});
      actual.push_back({results[rank][i]});
    }
    const auto difference = DifferenceAt(wanted, actual, 0);
    if (!difference) return;
    Add(node, kept.node, *difference, FactsAt(wanted, actual, 0));
    for (size_t rank = 0; rank < results.size(); ++rank) {
      Value& part = results[rank][i];
      if (!writes_after_.IsWritten(node)) part = CopyOf(part);
      SetRight(wanted[rank][0], part);
    }
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
    const auto was_there = [&](StableId id) { return kept_.Find(id) != nullptr; };
    AddFinding(after_, node, reference, std::move(what), std::move(diagnosis), options_, was_there,
               proof_);
  }

  const Graph& before_;
  const Graph& after_;
  const Mesh& mesh_;
  const ProofOptions& options_;
  const SharedCalls writes_before_{before_}, writes_after_{after_};
  KeptResults kept_;
  bool is_wrong_ = false;  // a value that differs was not kept, so nothing after it is right
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

}  // namespace strata::prove

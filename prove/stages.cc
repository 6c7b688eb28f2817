#include "prove/stages.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/prove_pass.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// One for each rank.
using OnRanks = std::vector<Value>;

std::vector<Values> CopiesOf(const std::vector<Values>& ranks) {
  std::vector<Values> copies;
  for (const Values& values : ranks) {
    copies.emplace_back();
    for (const Value& value : values)
      copies.back().push_back(CopyOf(value));
  }
  return copies;
}

/// Runs graphs on all ranks, and finds what they compute differently.
class StageProver {
 public:
  StageProver(Mesh mesh, const ProofOptions& options) : mesh_(std::move(mesh)), options_(options) {}

  const Mesh& mesh() const { return mesh_; }

  Result<std::vector<Values>> Run(const Graph& graph, const std::vector<Values>& inputs) {
    RankEvaluator evaluator(graph, mesh_, options_.seed);
    auto outputs = evaluator.Run(inputs);
    if (!outputs) return std::move(outputs).error().In("graph " + std::string(graph.name_text()));
    proof_.evaluations += evaluator.evaluations();
    const std::set<std::string> opaque = evaluator.opaque();
    opaque_.insert(opaque.begin(), opaque.end());
    return outputs;
  }

  /// `node`: of the graph that computed the actual value.
  void Check(const OnRanks& expected, const OnRanks& actual, const std::string& node,
             std::string_view reference, std::string_view what) {
    ++proof_.values;
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      if (SameValue(expected[rank], actual[rank])) continue;
      Add(node, reference,
          fmt::format("{}: rank {}: {}", what, rank,
                      DescribeDifference(expected[rank], actual[rank])));
      return;
    }
  }
  void Add(const std::string& node, std::string_view reference, std::string what) {
    if (proof_.findings.size() >= options_.max_findings) return;
    proof_.findings.push_back({.node = node,
                               .reference = std::string(reference),
                               .module = "",
                               .what = std::move(what),
                               .diagnosis = {},
                               .from = {}});
  }

  Proof Take() {
    proof_.opaque.assign(opaque_.begin(), opaque_.end());
    if (!proof_.findings.empty()) proof_.verdict = Verdict::kDiffers;
    return std::move(proof_);
  }

 private:
  const Mesh mesh_;
  const ProofOptions& options_;
  std::set<std::string> opaque_;
  Proof proof_;
};

OnRanks At(const std::vector<Values>& ranks, size_t i) {
  OnRanks values;
  for (const Values& of_rank : ranks)
    values.push_back(of_rank[i]);
  return values;
}

/// `stage1.backward/mm_4`, the node that computes an output.
std::string OutputName(const Graph& graph, size_t i) {
  const NodeId def = graph.value(graph.operands(graph.output())[i]).def;
  return fmt::format("{}/{}", graph.name_text(), graph.name(def));
}

Result<Proof> EvaluateJoined(const Graph& joined, const Graph& first, const Graph& second,
                             const ProofOptions& options) {
  STRATA_TRY(Mesh mesh, MeshToEvaluate(first));
  StageProver prover(std::move(mesh), options);
  if (first.placeholders().size() + second.placeholders().size() != joined.placeholders().size())
    return Error(ErrorCode::kUnsupported, "other inputs than both graphs have");
  STRATA_TRY(const std::vector<Values> for_first,
             InputsOnRanks(first, prover.mesh(), options.seed, options.makers));
  STRATA_TRY(const std::vector<Values> for_second,
             InputsOnRanks(second, prover.mesh(), options.seed));
  std::vector<Values> inputs = CopiesOf(for_first);
  for (size_t rank = 0; rank < inputs.size(); ++rank)
    for (const Value& value : for_second[rank])
      inputs[rank].push_back(CopyOf(value));
  STRATA_TRY(std::vector<Values> expected, prover.Run(first, for_first));
  STRATA_TRY(const std::vector<Values> more, prover.Run(second, for_second));
  for (size_t rank = 0; rank < expected.size(); ++rank)
    expected[rank].insert(expected[rank].end(), more[rank].begin(), more[rank].end());
  STRATA_TRY(const std::vector<Values> actual, prover.Run(joined, inputs));
  if (expected[0].size() != actual[0].size())
    return Error(ErrorCode::kUnsupported, "other outputs than both graphs have");
  const size_t outputs_of_first = first.operands(first.output()).size();
  for (size_t i = 0; i < actual[0].size(); ++i) {
    const std::string reference =
        i < outputs_of_first ? OutputName(first, i) : OutputName(second, i - outputs_of_first);
    prover.Check(At(expected, i), At(actual, i), OutputName(joined, i), reference,
                 fmt::format("output {}", i));
  }
  return prover.Take();
}

Proof OrUnproven(Result<Proof> proof) {
  if (proof) return *std::move(proof);
  Proof unproven;
  unproven.verdict = Verdict::kUnproven;
  unproven.reason = proof.error().message();
  return unproven;
}

}  // namespace

Proof ProveStages(const StageCut& cut, const ProofOptions& options) {
  const Result<JoinedStages> joined = JoinStages(cut);
  if (!joined) return OrUnproven(joined.error());
  Proof proof;
  for (const std::string& output : joined->missing) {
    AddFinding(
        joined->graph(), joined->graph().output(), "", output + ": no graph computes it",
        {.kind = BugKind::kContract, .reason = ""}, options, [](StableId) { return true; }, proof);
  }
  if (!joined->unmatched_node.empty()) {
    proof.findings.push_back(
        {.node = joined->unmatched_node,
         .reference = "",
         .module = "",
         .what = joined->unmatched_call +
                 (joined->other_node.empty() ? " has no counterpart on another rank"
                                             : ", where another rank calls " + joined->other_node),
         .diagnosis = {.kind = BugKind::kCollectiveOrder, .reason = ""},
         .from = {}});
  }
  if (proof.findings.empty()) {
    ProofOptions of_pass = options;
    of_pass.stable_ids = !cut.originals.empty();
    proof = ProvePass(joined->module->graph(joined->whole), joined->graph(), of_pass);
  } else {
    proof.verdict = Verdict::kDiffers;
  }
  for (Finding& finding : proof.findings)
    finding.reference = fmt::format("{}/{}", cut.whole->name_text(), finding.reference);
  return proof;
}

Proof ProveJoined(const Graph& joined, const Graph& first, const Graph& second,
                  const ProofOptions& options) {
  return OrUnproven(EvaluateJoined(joined, first, second, options));
}

}  // namespace strata::prove

#include "prove/stages.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/pipeline/slots.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

using Kind = StageSlot::Kind;

/// One for each rank.
using OnRanks = std::vector<Value>;

constexpr int64_t kGlobal = -1;  // what belongs to no stage

/// A value between graphs: the stage that reads it, and its slot.
using SlotKey = std::pair<int64_t, StageSlot>;

SlotKey KeyOfInput(int64_t stage, const StageSlot& slot) {
  const bool is_global = slot.kind == Kind::kInput || slot.kind == Kind::kParameterGradient;
  return {is_global ? kGlobal : stage, slot};
}

SlotKey KeyOfOutput(int64_t stage, const StageSlot& slot) {
  if (slot.kind == Kind::kActivation) return {stage + 1, slot};
  if (slot.kind == Kind::kGradient) return {stage - 1, slot};
  const bool is_of_stage =
      slot.kind == Kind::kWhole || slot.kind == Kind::kSaved || slot.kind == Kind::kKept;
  return {is_of_stage ? stage : kGlobal, slot};
}

/// What the inputs and outputs of a graph are, in order.
struct Signature {
  std::vector<SlotKey> inputs, outputs;
};

/// Of a step: its loss, gradients by parameter, further outputs.
Signature OfStep(const Graph& step) {
  Signature signature;
  std::vector<SlotKey> gradients;
  for (const NodeId node : step.placeholders()) {
    const std::string name = StageInputName(step, node);
    signature.inputs.emplace_back(kGlobal, StageSlot{.kind = Kind::kInput, .name = name});
    if (step.attribute(node, "input") == "parameter")
      gradients.emplace_back(kGlobal, StageSlot{.kind = Kind::kParameterGradient, .name = name});
  }
  signature.outputs = {{kGlobal, StageSlot{.kind = Kind::kLoss, .name = ""}}};
  signature.outputs.insert(signature.outputs.end(), gradients.begin(), gradients.end());
  const size_t first_extra = signature.outputs.size();
  for (size_t i = first_extra; i < step.operands(step.output()).size(); ++i) {
    signature.outputs.emplace_back(
        kGlobal, StageSlot{.kind = Kind::kExtra, .name = fmt::format("{}", i - first_extra)});
  }
  return signature;
}

Result<Signature> SignatureOf(const Graph& graph, int64_t stage) {
  if (graph.attribute(graph.output(), kSlotsAttribute).empty()) return OfStep(graph);
  STRATA_TRY(const StageSlots slots, StageSlotsOf(graph));
  Signature signature;
  for (const StageSlot& slot : slots.inputs)
    signature.inputs.push_back(KeyOfInput(stage, slot));
  for (const StageSlot& slot : slots.outputs)
    signature.outputs.push_back(KeyOfOutput(stage, slot));
  return signature;
}

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

Result<Proof> EvaluateStages(const Graph& whole, int64_t stage, std::span<const StagePart> parts,
                             const ProofOptions& options) {
  STRATA_TRY(Mesh mesh, MeshToEvaluate(whole));
  StageProver prover(std::move(mesh), options);
  STRATA_TRY(const Signature signature, SignatureOf(whole, stage));
  STRATA_TRY(const std::vector<Values> inputs, InputsOnRanks(whole, prover.mesh(), options.seed));
  const std::vector<Values> for_parts = CopiesOf(inputs);
  STRATA_TRY(const std::vector<Values> expected, prover.Run(whole, inputs));
  std::map<SlotKey, OnRanks> values;
  std::map<SlotKey, std::string> nodes;
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    values.insert_or_assign(signature.inputs[i], At(for_parts, i));
  for (const StagePart& part : parts) {
    STRATA_TRY(const Signature of_part, SignatureOf(*part.graph, part.stage));
    std::vector<Values> arguments(inputs.size());
    for (const SlotKey& key : of_part.inputs) {
      const auto found = values.find(key);
      if (found == values.end()) {
        return Error(ErrorCode::kUnsupported, "graph {}: no graph before it has '{}'",
                     part.graph->name_text(), ToString(key.second));
      }
      for (size_t rank = 0; rank < arguments.size(); ++rank)
        arguments[rank].push_back(found->second[rank]);
    }
    STRATA_TRY(const std::vector<Values> results, prover.Run(*part.graph, arguments));
    for (size_t i = 0; i < of_part.outputs.size(); ++i) {
      values.insert_or_assign(of_part.outputs[i], At(results, i));
      nodes.insert_or_assign(of_part.outputs[i], OutputName(*part.graph, i));
    }
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const SlotKey& key = signature.outputs[i];
    const std::string what = ToString(key.second);
    const auto made = nodes.find(key);
    const OnRanks wanted = At(expected, i);
    if (made != nodes.end()) {
      prover.Check(wanted, values.at(key), made->second, OutputName(whole, i), what);
    } else if (std::holds_alternative<Tensor>(wanted[0])) {
      prover.Add("", OutputName(whole, i), what + ": no graph computes it");
    }
  }
  const std::vector<NodeId> placeholders = whole.placeholders();
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const std::string_view name = whole.name(placeholders[i]);
    prover.Check(At(inputs, i), At(for_parts, i), std::string(name), name, "after the graphs");
  }
  return prover.Take();
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

Proof ProveStages(const Graph& whole, int64_t stage, std::span<const StagePart> parts,
                  const ProofOptions& options) {
  return OrUnproven(EvaluateStages(whole, stage, parts, options));
}

Proof ProveJoined(const Graph& joined, const Graph& first, const Graph& second,
                  const ProofOptions& options) {
  return OrUnproven(EvaluateJoined(joined, first, second, options));
}

}  // namespace strata::prove

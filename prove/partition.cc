#include "prove/partition.h"

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "prove/evaluation/drawn_values.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/stated_constants.h"
#include "prove/sizes/chosen_sizes.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

using ValuesByName = std::map<std::string, Value, std::less<>>;

Result<std::vector<Value>> InputsOf(const Graph& graph, const ValuesByName& values) {
  std::vector<Value> inputs;
  for (const NodeId node : graph.placeholders()) {
    const auto found = values.find(graph.name(node));
    if (found == values.end())
      return Error(ErrorCode::kUnsupported, "input {} of {} has no value of that name",
                   graph.name(node), graph.name_text());
    inputs.push_back(found->second);
  }
  return inputs;
}

struct Outputs {
  std::vector<Value> expected, actual;
  OpaqueCalls calls_before, calls_after;
};

Result<Outputs> EvaluateAll(const Graph& joint, const Graph& forward, const Graph& backward,
                            uint64_t seed, Proof& proof) {
  STRATA_TRY(const std::vector<Value> inputs, MakeInputs(joint, seed));
  ValuesByName values;
  const std::vector<NodeId> placeholders = joint.placeholders();
  for (size_t i = 0; i < inputs.size(); ++i)
    values.emplace(joint.name(placeholders[i]), CopyOf(inputs[i]));
  ConstantNumbers constants;
  for (const Graph* half : {&forward, &backward})
    for (std::string& text : AddStatedConstants(joint, *half, constants))
      proof.assumptions.push_back({std::move(text)});
  Evaluator whole(joint, seed), first(forward, seed), second(backward, seed);
  for (Evaluator* evaluator : {&whole, &first, &second})
    evaluator->SetConstants(constants);
  whole.SeedGenerator();
  first.SeedGenerator();
  const std::array<const Graph*, 2> halves = {&forward, &backward};
  const SeededDraws draws(joint, halves);
  DrawnValues drawn(draws);
  if (!draws.empty()) proof.assumptions.push_back({draws.Text()});
  Outputs outputs;
  STRATA_TRY(outputs.expected, whole.Run(inputs, [&](NodeId node, std::span<Value> results) {
    drawn.Keep(node, results);
  }));
  const GivenResults drawn_first = drawn.ResultsIn(forward),
                     drawn_second = drawn.ResultsIn(backward);
  first.SetResults(drawn_first);
  second.SetResults(drawn_second);
  STRATA_TRY(const std::vector<Value> for_forward, InputsOf(forward, values));
  STRATA_TRY(const std::vector<Value> saved, first.Run(for_forward));
  const std::vector<ValueId> names = forward.operands(forward.output());
  for (size_t i = 0; i < saved.size(); ++i)
    values.insert_or_assign(std::string(forward.value_name(names[i])), saved[i]);
  STRATA_TRY(const std::vector<Value> for_backward, InputsOf(backward, values));
  second.DrawAfter(first);
  STRATA_TRY(const std::vector<Value> gradients, second.Run(for_backward));
  if (gradients.size() > outputs.expected.size() ||
      outputs.expected.size() - gradients.size() > saved.size()) {
    return Error(ErrorCode::kUnsupported, "other outputs than the joint graph has");
  }
  const auto results = static_cast<std::ptrdiff_t>(outputs.expected.size() - gradients.size());
  outputs.actual.assign(saved.begin(), saved.begin() + results);
  outputs.actual.insert(outputs.actual.end(), gradients.begin(), gradients.end());
  std::set<std::string> opaque;
  for (const Evaluator* evaluator : {&whole, &first, &second}) {
    proof.evaluations += evaluator->evaluations();
    opaque.insert(evaluator->opaque().begin(), evaluator->opaque().end());
  }
  proof.opaque.assign(opaque.begin(), opaque.end());
  outputs.calls_before = whole.opaque_calls();
  outputs.calls_after = first.opaque_calls();
  outputs.calls_after.Add(second.opaque_calls());
  return outputs;
}

Proof ProveSized(const Graph& joint, const Graph& forward, const Graph& backward,
                 const ProofOptions& options) {
  Proof proof;
  const Result<Outputs> outputs = EvaluateAll(joint, forward, backward, options.seed, proof);
  if (!outputs) {
    proof.verdict = Verdict::kUnproven;
    proof.reason = outputs.error().message();
    return proof;
  }
  const std::vector<ValueId> names = joint.operands(joint.output());
  for (size_t i = 0; i < outputs->expected.size(); ++i) {
    ++proof.values;
    const Value &expected = outputs->expected[i], &actual = outputs->actual[i];
    if (SameValue(expected, actual) || proof.findings.size() >= options.max_findings) continue;
    const std::string name(joint.value_name(names[i]));
    proof.findings.push_back({.node = name,
                              .reference = name,
                              .module = {},
                              .what = DescribeDifference(expected, actual),
                              .diagnosis = {},
                              .from = {}});
  }
  if (!proof.findings.empty()) proof.verdict = Verdict::kDiffers;
  CheckOpaqueCalls(outputs->calls_before, outputs->calls_after, proof);
  return proof;
}

}  // namespace

Proof ProvePartition(const Graph& joint, const Graph& forward, const Graph& backward,
                     const ProofOptions& options) {
  const std::array<const Graph*, 3> graphs = {&joint, &forward, &backward};
  return WithSizes(graphs, [&](const GraphsWithSizes& sized) {
    return ProveSized(sized[0], sized[1], sized[2], options);
  });
}

}  // namespace strata::prove

#include "runtime/exec/compare_values.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <ATen/core/Tensor.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/seeded_draws.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/graph_run.h"
#include "runtime/exec/step/observer.h"
#include "runtime/plan/plan.h"

namespace strata {
namespace {

using at::Tensor;

bool IsComparable(const Tensor& before, const Tensor& after) {
  return before.defined() && after.defined() && before.scalar_type() == after.scalar_type() &&
         before.sizes() == after.sizes() && HasOrder(before.scalar_type());
}

std::string TypeOf(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} [{}]", ShortName(tensor.scalar_type()),
                                        fmt::join(tensor.sizes(), ", "))
                          : "none";
}

/// Calls `fn(value, result)` for each result of a node of the graph.
template <class Fn>
class ResultObserver final : public ExecutionObserver {
 public:
  ResultObserver(const Graph& graph, Fn fn) : graph_(graph), fn_(std::move(fn)) {}
  void OnStep(const PlanStep& step, std::span<const Tensor> results) override {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::optional<size_t> result = step.ResultOfNode(i);
      if (result && *result < graph_.node(step.node).num_results)
        fn_(graph_.result(step.node, *result), results[i]);
    }
  }

 private:
  const Graph& graph_;
  Fn fn_;
};

/// Compares what stands for each other.
class Comparer {
 public:
  explicit Comparer(const ValueTolerance& tolerance) : tolerance_(tolerance) {}

  void Add(ComparedValues& kind, const ValuePair& pair, const Tensor& before,
           const Tensor& after) const {
    if (IsComparable(before, after)) {
      ++kind.compared;
      const TensorDifference difference = Compare(before, after);
      if (!IsWithin(difference, tolerance_)) kind.mismatches.push_back({pair, difference, {}});
    } else if (TypeOf(before) != TypeOf(after)) {
      ++kind.compared;
      kind.mismatches.push_back(
          {pair, {}, fmt::format("{}, was {}", TypeOf(after), TypeOf(before))});
    }
  }

 private:
  ValueTolerance tolerance_;
};

}  // namespace

const ValueMismatch* ValueComparison::first() const {
  for (const ComparedValues* kind : {&nodes, &outputs, &written}) {
    if (!kind->mismatches.empty()) return &kind->mismatches.front();
  }
  return nullptr;
}

Result<ValueComparison> CompareValues(const Graph& before, const Graph& after,
                                      std::span<const ValuePair> pairs,
                                      const NamedTensors& before_inputs,
                                      const NamedTensors& after_inputs,
                                      const ValueTolerance& tolerance) {
  std::map<ValueId, ValueId> partner;  // of a value after: the value before
  std::set<ValueId> wanted;
  for (const ValuePair& pair : pairs) {
    partner.emplace(pair.after, pair.before);
    wanted.insert(pair.before);
  }
  const SeededDraws draws(before, std::array{&after});
  std::map<ValueId, Tensor> kept;
  ResultObserver keep(before, [&](ValueId value, const Tensor& result) {
    const bool is_read = wanted.contains(value) || draws.IsDraw(before.value(value).def);
    if (is_read && result.defined()) kept.insert_or_assign(value, result.clone());
  });
  STRATA_TRY(const GraphRun run_before, RunGraph(before, before_inputs, &keep));

  ValueComparison comparison;
  const Comparer comparer(tolerance);
  ResultObserver compare(after, [&](ValueId value, const Tensor& result) {
    if (const NodeId draw = draws.DrawOf(after, after.value(value).def); draw.valid()) {
      result.copy_(kept.at(before.result(draw)));
      return;
    }
    const auto pair = partner.find(value);
    if (pair == partner.end()) return;
    const auto other = kept.find(pair->second);
    if (other == kept.end() || !IsComparable(other->second, result)) {
      ++comparison.not_compared;
      return;
    }
    comparer.Add(comparison.nodes, {pair->second, value}, other->second, result);
  });
  STRATA_TRY(const GraphRun run_after, RunGraph(after, after_inputs, &compare));

  const bool by_place = run_before.outputs.size() == run_after.outputs.size();
  for (size_t i = 0; i < run_after.outputs.size(); ++i) {
    const GraphRun::Output& output = run_after.outputs[i];
    const GraphRun::Output* other = nullptr;
    if (by_place) {
      other = &run_before.outputs[i];
    } else if (const auto pair = partner.find(output.value); pair != partner.end()) {
      other = run_before.FindOutput(pair->second);
    }
    if (other == nullptr) continue;
    comparer.Add(comparison.outputs, {other->value, output.value}, other->tensor, output.tensor);
  }
  for (const GraphRun::Input& input : run_after.inputs) {
    const auto pair = partner.find(input.value);
    if (pair == partner.end()) continue;
    const GraphRun::Input* other = run_before.FindInput(pair->second);
    if (other == nullptr || (!other->IsWritten() && !input.IsWritten())) continue;
    comparer.Add(comparison.written, {other->value, input.value}, other->tensor, input.tensor);
  }
  return comparison;
}

}  // namespace strata

#include "runtime/exec/compare_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include <ATen/Context.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/Parallel.h>
#include <ATen/ops/view_as_real.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/collectives.h"

namespace strata {
namespace {

using at::Tensor;

/// Place of a number among all of its type, so that neighbours differ by 1 and both zeros are 0.
template <class Float, class Bits>
int64_t Place(Float value) {
  using Signed = std::make_signed_t<Bits>;
  const auto bits = std::bit_cast<Signed>(value);
  constexpr auto kLowest = std::numeric_limits<Signed>::min();
  return bits >= 0 ? static_cast<int64_t>(bits) : static_cast<int64_t>(kLowest) - bits;
}

template <class T>
double UlpsBetween(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Large neighbours are the same double.
    if (a == b) return 0.0;
    return std::max(1.0, std::abs(static_cast<double>(a) - static_cast<double>(b)));
  } else {
    if (a == b || (std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b)))) {
      return 0.0;
    }
    if (std::isnan(static_cast<double>(a)) || std::isnan(static_cast<double>(b))) {
      return std::numeric_limits<double>::infinity();
    }
    if constexpr (sizeof(T) == 8) {
      const int64_t low = std::min(Place<T, uint64_t>(a), Place<T, uint64_t>(b));
      const int64_t high = std::max(Place<T, uint64_t>(a), Place<T, uint64_t>(b));
      return static_cast<double>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
    } else if constexpr (sizeof(T) == 4) {
      return static_cast<double>(std::abs(Place<T, uint32_t>(a) - Place<T, uint32_t>(b)));
    } else if constexpr (sizeof(T) == 2) {
      return static_cast<double>(std::abs(Place<T, uint16_t>(a) - Place<T, uint16_t>(b)));
    } else {
      return static_cast<double>(std::abs(Place<T, uint8_t>(a) - Place<T, uint8_t>(b)));
    }
  }
}

template <class T>
TensorDifference CompareElements(const Tensor& before, const Tensor& after) {
  TensorDifference difference;
  const T* a = before.const_data_ptr<T>();
  const T* b = after.const_data_ptr<T>();
  for (int64_t i = 0; i < before.numel(); ++i) {
    const double ulps = UlpsBetween(a[i], b[i]);
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (std::isfinite(x)) difference.magnitude = std::max(difference.magnitude, std::abs(x));
    if (ulps == 0.0) continue;
    ++difference.elements;
    if (std::abs(x - y) > difference.max_abs) difference.max_abs = std::abs(x - y);
    if (ulps <= difference.max_ulps) continue;
    difference.max_ulps = ulps;
    difference.where = i;
    difference.before = x;
    difference.after = y;
  }
  return difference;
}

bool HasOrder(at::ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true) || c10::isComplexType(type) ||
         type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16 ||
         type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2;
}

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
    const size_t count = std::min<size_t>(results.size(), graph_.node(step.node).num_results);
    for (size_t i = 0; i < count; ++i)
      fn_(graph_.result(step.node, i), results[i]);
  }

 private:
  const Graph& graph_;
  Fn fn_;
};

/// Tensors with the values of a graph that they are, by place.
struct PlacedTensors {
  std::vector<Tensor> tensors;
  std::vector<ValueId> values;

  const Tensor* Find(ValueId value) const {
    const auto found = std::ranges::find(values, value);
    return found == values.end() ? nullptr : &tensors[found - values.begin()];
  }
};

/// A graph that ran.
struct GraphRun {
  PlacedTensors inputs;       // as the run left them
  std::vector<Tensor> given;  // as it got them, if the graph writes at all
  PlacedTensors outputs;
  std::vector<std::string> names;  // of the outputs

  bool Wrote(ValueId input) const {
    if (given.empty()) return false;
    const auto place =
        static_cast<size_t>(std::ranges::find(inputs.values, input) - inputs.values.begin());
    const Tensor& before = given[place];
    return HasOrder(before.scalar_type()) && Compare(before, inputs.tensors[place]).elements > 0;
  }
};

Result<GraphRun> Run(const Graph& graph, const NamedTensors& given, ExecutionObserver* observer) {
  RegisterCollectives();  // and what placed graphs call
  GraphRun run;
  STRATA_TRY(run.inputs.tensors, TakeInputs(graph, given));
  const std::vector<Tensor>& inputs = run.inputs.tensors;
  for (const NodeId node : GivenInputs(graph))
    run.inputs.values.push_back(graph.result(node));
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& input : inputs)
    shapes.push_back(input.sizes().vec());
  STRATA_TRY(SymbolSizes sizes, SizesOfInputs(graph, shapes));
  sizes.merge(DrawSizes(graph));
  static std::mutex one_at_a_time;  // ranks make the same kernels
  std::unique_lock lock(one_at_a_time);
  STRATA_TRY(Plan plan, Lower(graph, {}, sizes));
  // Kernels are bound to places in memory.
  if (!plan.kernels.empty()) {
    STRATA_TRY(plan, Lower(graph, {.fold_views = true}, sizes));
  }
  if (std::ranges::any_of(plan.steps, &PlanStep::mutates)) {
    for (const Tensor& input : inputs)
      run.given.push_back(input.clone());
  }
  Constants constants;
  for (const Plan::Constant& constant : plan.constants) {
    const auto found = given.find(constant.path);
    if (found != given.end()) constants.emplace_back(constant.path, found->second);
  }
  STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), constants));
  lock.unlock();
  at::manual_seed(0);  // both graphs draw the same random numbers
  STRATA_TRY(run.outputs.tensors, executor.Run(inputs, observer));
  for (const SlotId slot : executor.plan().outputs) {
    const PlanSlot none;
    const PlanSlot& output = !slot.valid() ? none : executor.plan().slots[slot];
    run.outputs.values.push_back(output.value);
    run.names.push_back(output.name);
  }
  return run;
}

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

TensorDifference Compare(const Tensor& before, const Tensor& after) {
  const auto plain = [](const Tensor& tensor) {
    return (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor).contiguous();
  };
  const Tensor a = plain(before), b = plain(after);
  TensorDifference difference;
  AT_DISPATCH_V2(a.scalar_type(), "Compare",
                 AT_WRAP([&] { difference = CompareElements<scalar_t>(a, b); }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool,
                 at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2);
  return difference;
}

bool IsWithin(const TensorDifference& difference, const ValueTolerance& tolerance) {
  if (difference.max_ulps <= tolerance.ulps) return true;
  // A NaN on one side is infinitely far away.
  return std::isfinite(difference.max_ulps) &&
         difference.max_abs <= tolerance.relative * difference.magnitude;
}

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
  std::map<ValueId, Tensor> kept;
  ResultObserver keep(before, [&](ValueId value, const Tensor& result) {
    if (wanted.contains(value) && result.defined()) kept.insert_or_assign(value, result.clone());
  });
  STRATA_TRY(const GraphRun run_before, Run(before, before_inputs, &keep));

  ValueComparison comparison;
  const Comparer comparer(tolerance);
  ResultObserver compare(after, [&](ValueId value, const Tensor& result) {
    const auto pair = partner.find(value);
    if (pair == partner.end()) return;
    const auto other = kept.find(pair->second);
    if (other == kept.end() || !IsComparable(other->second, result)) {
      ++comparison.not_compared;
      return;
    }
    comparer.Add(comparison.nodes, {pair->second, value}, other->second, result);
  });
  STRATA_TRY(const GraphRun run_after, Run(after, after_inputs, &compare));

  const PlacedTensors &outputs_before = run_before.outputs, &outputs_after = run_after.outputs;
  const bool by_place = outputs_before.tensors.size() == outputs_after.tensors.size();
  for (size_t i = 0; i < outputs_after.tensors.size(); ++i) {
    const ValueId value = outputs_after.values[i];
    if (by_place) {
      comparer.Add(comparison.outputs, {outputs_before.values[i], value}, outputs_before.tensors[i],
                   outputs_after.tensors[i]);
      continue;
    }
    const auto pair = partner.find(value);
    if (pair == partner.end()) continue;
    if (const Tensor* other = outputs_before.Find(pair->second)) {
      comparer.Add(comparison.outputs, {pair->second, value}, *other, outputs_after.tensors[i]);
    }
  }
  for (size_t i = 0; i < run_after.inputs.values.size(); ++i) {
    const ValueId value = run_after.inputs.values[i];
    const auto pair = partner.find(value);
    if (pair == partner.end()) continue;
    const Tensor* other = run_before.inputs.Find(pair->second);
    if (other == nullptr || (!run_before.Wrote(pair->second) && !run_after.Wrote(value))) continue;
    comparer.Add(comparison.written, {pair->second, value}, *other, run_after.inputs.tensors[i]);
  }
  return comparison;
}

Result<std::vector<std::pair<std::string, Tensor>>> RunGraph(const Graph& graph,
                                                             const NamedTensors& inputs) {
  STRATA_TRY(const GraphRun run, Run(graph, inputs, nullptr));
  std::vector<std::pair<std::string, Tensor>> named;
  std::set<std::string> seen;
  for (size_t i = 0; i < run.names.size(); ++i) {
    if (run.names[i].empty() || !seen.insert(run.names[i]).second) continue;
    named.emplace_back(run.names[i], run.outputs.tensors[i]);
  }
  for (size_t i = 0; i < run.inputs.values.size(); ++i) {
    const ValueId input = run.inputs.values[i];
    const std::string name = InputName(graph, graph.value(input).def);
    if (run.Wrote(input) && seen.insert(name).second)
      named.emplace_back(name, run.inputs.tensors[i]);
  }
  return named;
}

}  // namespace strata

#include "runtime/torch/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/view_as_real.h>

#include "ir/module.h"
#include "runtime/plan/plan.h"
#include "runtime/torch/executor.h"

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
    // Doubles do not tell large neighbours apart.
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
    } else {
      return static_cast<double>(std::abs(Place<T, uint16_t>(a) - Place<T, uint16_t>(b)));
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
    if (ulps == 0.0) continue;
    ++difference.elements;
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (std::abs(x - y) > difference.max_abs) difference.max_abs = std::abs(x - y);
    if (ulps <= difference.max_ulps) continue;
    difference.max_ulps = ulps;
    difference.where = i;
    difference.before = x;
    difference.after = y;
  }
  return difference;
}

bool IsComparable(const Tensor& before, const Tensor& after) {
  if (!before.defined() || !after.defined()) return false;
  if (before.scalar_type() != after.scalar_type() || before.sizes() != after.sizes()) return false;
  const at::ScalarType type = before.scalar_type();
  return c10::isIntegralType(type, /*includeBool=*/true) || before.is_complex() ||
         type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
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

Result<std::vector<Tensor>> Run(const Graph& graph, const NamedTensors& given,
                                ExecutionObserver* observer) {
  STRATA_TRY(const std::vector<Tensor> inputs, TakeInputs(graph, given));
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& input : inputs)
    shapes.push_back(input.sizes().vec());
  STRATA_TRY(const SymbolSizes sizes, SizesOfInputs(graph, shapes));
  STRATA_TRY(Plan plan, Lower(graph, {}, sizes));
  // Kernels are bound to places in memory.
  if (!plan.kernels.empty()) {
    STRATA_TRY(plan, Lower(graph, {.fold_views = true}, sizes));
  }
  Constants constants;
  for (const Plan::Constant& constant : plan.constants) {
    const auto found = given.find(constant.path);
    if (found != given.end()) constants.emplace_back(constant.path, found->second);
  }
  STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), constants));
  return executor.Run(inputs, observer);
}

}  // namespace

TensorDifference Compare(const Tensor& before, const Tensor& after) {
  const auto plain = [](const Tensor& tensor) {
    return (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor).contiguous();
  };
  const Tensor a = plain(before), b = plain(after);
  TensorDifference difference;
  AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, a.scalar_type(), "Compare",
                             [&] { difference = CompareElements<scalar_t>(a, b); });
  return difference;
}

Result<ValueComparison> CompareValues(const Graph& before, const Graph& after,
                                      std::span<const ValuePair> pairs,
                                      const NamedTensors& before_inputs,
                                      const NamedTensors& after_inputs, double tolerated_ulps) {
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
  STRATA_TRY(const std::vector<Tensor> outputs_before, Run(before, before_inputs, &keep));

  ValueComparison comparison;
  ResultObserver compare(after, [&](ValueId value, const Tensor& result) {
    const auto pair = partner.find(value);
    if (pair == partner.end()) return;
    const auto other = kept.find(pair->second);
    if (other == kept.end() || !IsComparable(other->second, result)) {
      ++comparison.not_compared;
      return;
    }
    ++comparison.compared;
    const TensorDifference difference = Compare(other->second, result);
    if (difference.max_ulps <= tolerated_ulps) return;
    ++comparison.different;
    comparison.max_ulps = std::max(comparison.max_ulps, difference.max_ulps);
    comparison.mismatches.push_back({{pair->second, value}, difference});
  });
  STRATA_TRY(const std::vector<Tensor> outputs_after, Run(after, after_inputs, &compare));

  for (size_t i = 0; i < std::min(outputs_before.size(), outputs_after.size()); ++i) {
    if (!IsComparable(outputs_before[i], outputs_after[i])) continue;
    ++comparison.outputs;
    const TensorDifference difference = Compare(outputs_before[i], outputs_after[i]);
    if (difference.max_ulps <= tolerated_ulps) continue;
    ++comparison.different_outputs;
    comparison.max_output_ulps = std::max(comparison.max_output_ulps, difference.max_ulps);
  }
  return comparison;
}

Result<std::vector<std::pair<std::string, Tensor>>> RunGraph(const Graph& graph,
                                                             const NamedTensors& inputs) {
  STRATA_TRY(const Plan plan, Lower(graph, {}, HintsOf(graph)));
  STRATA_TRY(const std::vector<Tensor> outputs, Run(graph, inputs, nullptr));
  std::vector<std::pair<std::string, Tensor>> named;
  std::set<int32_t> seen;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int32_t slot = plan.outputs[i];
    if (slot < 0 || !seen.insert(slot).second) continue;
    named.emplace_back(plan.slots[static_cast<size_t>(slot)].name, outputs[i]);
  }
  return named;
}

}  // namespace strata

#include "runtime/torch/profile.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/view_as_real.h>

namespace strata {

ValueStatistics Measure(const at::Tensor& tensor) {
  ValueStatistics statistics{.elements = tensor.numel()};
  if (tensor.numel() == 0) return statistics;
  const at::Tensor numbers =
      (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor).to(at::kDouble);
  const at::Tensor finite = numbers.masked_select(at::isfinite(numbers));
  statistics.nan_count = at::isnan(numbers).sum().item<int64_t>();
  statistics.inf_count = numbers.numel() - finite.numel() - statistics.nan_count;
  if (finite.numel() == 0) return statistics;
  statistics.min = finite.min().item<double>();
  statistics.max = finite.max().item<double>();
  statistics.mean = finite.mean().item<double>();
  return statistics;
}

void NodeProfiler::BeginRun(bool with_values) {
  with_values_ = with_values;
  last_ = std::chrono::steady_clock::now();
}

void NodeProfiler::OnStep(const PlanStep& step, std::span<const at::Tensor> results) {
  const auto now = std::chrono::steady_clock::now();
  const auto index = static_cast<size_t>(step.node.index);
  if (index >= by_index_.size()) by_index_.resize(index + 1, nullptr);
  if (by_index_[index] == nullptr) by_index_[index] = &nodes_[step.node];
  NodeProfile& profile = *by_index_[index];
  ++profile.calls;
  profile.time += now - last_;
  profile.bytes = 0;
  for (const at::Tensor& result : results) {
    if (result.defined() && !step.is_view) profile.bytes += static_cast<int64_t>(result.nbytes());
  }
  if (with_values_ && !results.empty() && results[0].defined()) {
    profile.values = Measure(results[0]);
    last_ = std::chrono::steady_clock::now();
    return;
  }
  last_ = now;
}

}  // namespace strata

#include "runtime/exec/profile.h"

#include <cmath>
#include <optional>
#include <utility>

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
  times_.Clear();
  last_node_ = {};
  last_ = std::chrono::steady_clock::now();
}

void NodeProfiler::OnStep(const PlanStep& step, std::span<const at::Tensor> results) {
  const auto now = std::chrono::steady_clock::now();
  NodeProfile& profile = nodes_[step.node];
  const bool begins = std::exchange(last_node_, step.node) != step.node;
  if (begins) profile.bytes = 0;
  if (!times_.has_run()) {
    profile.calls += begins ? 1 : 0;
    profile.time += now - last_;
  }
  last_ = now;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::optional<size_t> result = step.ResultOfNode(i);
    if (!result || !results[i].defined()) continue;
    if (!step.is_view) profile.bytes += static_cast<int64_t>(results[i].nbytes());
    if (with_values_ && *result == 0) {
      profile.values = Measure(results[i]);
      last_ = std::chrono::steady_clock::now();
    }
  }
}

void NodeProfiler::EndRun(const Plan& plan) {
  if (!times_.has_run()) return;
  const std::span<const StepId> steps = times_.steps();
  TimedRuns& timed = timed_[plan.fingerprint()];
  if (timed.runs++ == 0) {
    for (const StepId id : steps) {
      const PlanStep& step = plan.steps[id];
      int64_t bytes = 0;
      for (size_t i = 0; i < step.results.size(); ++i) {
        const SlotId slot = step.results[i];
        if (!slot.valid() || step.is_view || !step.ResultOfNode(i)) continue;
        const std::optional<PlanLayout>& layout = plan.slots[slot].layout;
        if (layout) bytes += layout->num_elements() * ByteSize(layout->dtype);
      }
      timed.nodes.push_back(step.node);
      timed.bytes.push_back(bytes);
    }
    timed.nanoseconds.assign(steps.size(), 0.0);
  }
  times_.AddTo(timed.nanoseconds);
}

std::map<NodeId, NodeProfile> NodeProfiler::nodes() const {
  std::map<NodeId, NodeProfile> nodes = nodes_;
  for (const auto& [plan, timed] : timed_) {
    int64_t bytes = 0;
    for (size_t i = 0; i < timed.nodes.size(); ++i) {
      NodeProfile& profile = nodes[timed.nodes[i]];
      const bool begins = i == 0 || timed.nodes[i] != timed.nodes[i - 1];
      profile.calls += begins ? timed.runs : 0;
      profile.time += std::chrono::nanoseconds(std::llround(timed.nanoseconds[i]));
      bytes = timed.bytes[i] + (begins ? 0 : bytes);
      if (bytes > 0) profile.bytes = bytes;
    }
  }
  return nodes;
}

}  // namespace strata

#include "runtime/exec/step/measured_workspace.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"
#include "runtime/exec/step/memory_meter.h"
#include "runtime/exec/step/step_binder.h"
#include "runtime/plan/fast_products.h"
#include "runtime/plan/memory/workspace.h"

namespace strata {
namespace {

using at::Tensor;

constexpr std::string_view kGroupedProduct = "aten._grouped_mm.default";
// Whatever their operands are.
constexpr std::string_view kAlwaysMeasured[] = {"aten.sort.stable", "aten.convolution.default",
                                                "aten.convolution_backward.default", kFastMm,
                                                kFastBmm};
// Of narrow operands.
constexpr std::string_view kMeasured[] = {
    kGroupedProduct, "aten._scaled_dot_product_flash_attention_for_cpu.default",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default", "aten.bmm.default",
    "aten.mm.default"};

/// Zeros that lie so.
Tensor Zeros(const PlanLayout& layout) {
  const int64_t count = layout.storage_bytes() / ByteSize(layout.dtype);
  return at::zeros({count}, ToScalarType(layout.dtype))
      .as_strided(layout.sizes, layout.strides, layout.offset);
}

/// Rows of each of `ends` groups end here: all have as many, as far as that goes.
void SpreadRows(Tensor& ends, const Tensor& left, const Tensor& right) {
  const int64_t count = ends.numel();
  const int64_t rows = left.size(left.dim() - (right.dim() == 3 ? 2 : 1));
  for (int64_t i = 0; i < count; ++i)
    ends.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>((i + 1) * rows / count);
}

int64_t Measure(const Plan& plan, const PlanStep& step) {
  const auto op = FindOp(step.op);
  if (!op) return 0;
  auto bound = BindStep(step, *op);
  if (!bound || !bound->lists.empty() || !bound->numbers.empty()) return 0;
  torch::jit::Stack stack = bound->stack;
  for (const TensorSlot& tensor : bound->tensors)
    stack[tensor.arg] = Zeros(*plan.slots[tensor.slot].layout);
  if (step.op == kGroupedProduct) {
    Tensor ends = stack[2].toTensor();
    SpreadRows(ends, stack[0].toTensor(), stack[1].toTensor());
  }
  const torch::jit::Stack operands = stack;  // live longer than the call
  const c10::InferenceMode no_autograd;
  const MemoryMeter meter;
  op->callBoxed(&stack);
  const int64_t bytes = meter.peak_bytes() - meter.live_bytes();
  stack.clear();  // counted by the meter that counted its memory
  return std::max<int64_t>(0, bytes);
}

}  // namespace

int64_t MeasuredWorkspaceBytes(const Plan& plan, const PlanStep& step) {
  const int64_t told = WorkspaceBytes(plan, step, at::get_num_threads());
  const bool is_always = std::ranges::find(kAlwaysMeasured, step.op) != std::end(kAlwaysMeasured);
  if (!is_always && std::ranges::find(kMeasured, step.op) == std::end(kMeasured)) return told;
  std::string key = fmt::format("{} {}", step.op, at::get_num_threads());
  bool is_measured = is_always, is_known = true;
  step.ForEachOperand([&](SlotId slot) {
    const auto& layout = plan.slots[slot].layout;
    is_known = is_known && layout && layout->num_elements() > 0;
    if (!is_known) return;
    is_measured = is_measured || layout->dtype == DType::kBF16 || layout->dtype == DType::kF16;
    key += fmt::format(" {}{}{}", ShortName(layout->dtype), layout->sizes, layout->strides);
  });
  if (!is_measured || !is_known) return told;
  static std::mutex mutex;
  static std::map<std::string, int64_t> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  int64_t measured = 0;
  try {
    measured = Measure(plan, step);
  } catch (const std::exception&) {
    // The run reports what an operator refuses.
  }
  return known[key] = std::max(told, measured);
}

}  // namespace strata

#include "runtime/exec/boxed/device_kernels.h"

#include <algorithm>
#include <vector>

#include <ATen/ops/empty_strided.h>

#include "runtime/aten/literals.h"
#include "runtime/exec/boxed/step_streams.h"

namespace strata {
namespace {

using at::Tensor;

bool LiesAs(const Tensor& tensor, const PlanLayout& layout) {
  return tensor.sizes() == at::IntArrayRef(layout.sizes) &&
         tensor.strides() == at::IntArrayRef(layout.strides);
}

/// A tensor of its own in that layout.
Tensor NewTensor(const PlanLayout& layout, const c10::Device& device) {
  return at::empty_strided(layout.sizes, layout.strides,
                           at::TensorOptions().dtype(ToScalarType(layout.dtype)).device(device));
}

}  // namespace

DeviceFunction* DeviceKernels::Of(const PlanStep& step) const {
  if (step.flex_kernel.valid()) return flex[step.flex_kernel];
  return step.kernel.valid() ? fused[step.kernel] : nullptr;
}

Result<DeviceKernels> LoadDeviceKernels(const Plan& plan, Device* device) {
  DeviceKernels kernels;
  if (plan.kernels.empty() && plan.flex_kernels.empty()) return kernels;
  if (device == nullptr) return Error(ErrorCode::kInternal, "kernels need a device");
  if (!plan.kernels.empty()) {
    STRATA_TRY(kernels.fused.values(), device->Load(plan.kernels.values()));
  }
  if (!plan.flex_kernels.empty()) {
    STRATA_TRY(kernels.flex.values(), device->LoadFlex(plan.flex_kernels.values()));
  }
  return kernels;
}

Tensor LaidOutAs(const Tensor& tensor, const PlanLayout& layout) {
  if (LiesAs(tensor, layout) || tensor.sizes() != at::IntArrayRef(layout.sizes)) return tensor;
  Tensor copy = NewTensor(layout, tensor.device());
  copy.copy_(tensor);
  return copy;
}

void LayOutResults(const Plan& plan, const PlanStep& step, std::vector<c10::IValue>& stack) {
  if (step.is_view || step.mutates) return;
  for (size_t i = 0; i < stack.size() && i < step.results.size(); ++i) {
    if (!step.results[i].valid() || !stack[i].isTensor() || !stack[i].toTensor().defined())
      continue;
    const std::optional<PlanLayout>& layout = plan.slots[step.results[i]].layout;
    if (layout && plan.slots[step.results[i]].storage == step.results[i]) {
      stack[i] = LaidOutAs(stack[i].toTensor(), *layout);
    }
  }
}

void RunDeviceKernel(const Plan& plan, const PlanStep& step, Device& device,
                     DeviceFunction* function, IdVector<SlotId, c10::IValue>& values) {
  const Kernel& kernel = plan.kernels[step.kernel];
  std::vector<Tensor> tensors(static_cast<size_t>(kernel.num_arguments));
  for (size_t i = 0; i < step.args.size(); ++i) {
    const SlotId slot = step.args[i].slot;
    const Tensor& given = values[slot].toTensor();
    tensors[i] = LaidOutAs(given, *plan.slots[slot].layout);
    const bool is_written =
        std::ranges::binary_search(kernel.written_inputs, static_cast<int32_t>(i));
    TORCH_CHECK(!is_written || tensors[i].is_same(given),
                "a kernel writes to a tensor of another layout than was traced");
  }
  const c10::Device where =
      step.args.empty() ? c10::Device(device.traits().name) : tensors[0].device();
  for (size_t i = 0; i < step.results.size(); ++i) {
    const auto argument = static_cast<size_t>(kernel.result_arguments[i]);
    if (!tensors[argument].defined()) {
      TORCH_CHECK(step.results[i].valid() && plan.slots[step.results[i]].layout,
                  "a kernel has a result of unknown layout");
      tensors[argument] = NewTensor(*plan.slots[step.results[i]].layout, where);
    }
    if (step.results[i].valid()) values[step.results[i]] = tensors[argument];
  }
  std::vector<void*> addresses;
  for (const Tensor& tensor : tensors)
    addresses.push_back(tensor.mutable_data_ptr());
  ThrowUnlessOk(device.Launch(function, addresses));
}

void RunDeviceFlexKernel(const Plan& plan, const PlanStep& step, Device& device,
                         DeviceFunction* function, IdVector<SlotId, c10::IValue>& values) {
  std::vector<Tensor> tensors;
  step.ForEachOperand([&](SlotId slot) {
    tensors.push_back(LaidOutAs(values[slot].toTensor(), *plan.slots[slot].layout));
  });
  const c10::Device where(device.traits().name);
  for (const SlotId slot : step.results) {
    tensors.push_back(NewTensor(*plan.slots[slot].layout, where));
    values[slot] = tensors.back();
  }
  std::vector<void*> addresses;
  for (const Tensor& tensor : tensors)
    addresses.push_back(tensor.mutable_data_ptr());
  ThrowUnlessOk(device.Launch(function, addresses));
}

}  // namespace strata

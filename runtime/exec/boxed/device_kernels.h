#pragma once
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"

namespace strata {

/// The kernels of a plan, loaded on a device.
struct DeviceKernels {
  IdVector<KernelId, DeviceFunction*> fused;
  IdVector<FlexKernelId, DeviceFunction*> flex;

  /// Null: the step calls an operator.
  DeviceFunction* Of(const PlanStep& step) const;
};
/// Errors: those of the device; there are kernels and no device (kInternal).
Result<DeviceKernels> LoadDeviceKernels(const Plan& plan, Device* device);

/// The same values where the plan expects them: a copy, unless they lie so.
at::Tensor LaidOutAs(const at::Tensor& tensor, const PlanLayout& layout);

/// Lays out what an operator left on `stack` as it was traced; views, and what it wrote to, stay.
void LayOutResults(const Plan& plan, const PlanStep& step, std::vector<c10::IValue>& stack);

/// Launch the kernel of a step: operands and results are `values`, results get new memory in the
/// layout of the plan. Exceptions: errors of the device, a result of unknown layout, a kernel that
/// writes to an operand of another layout than was traced.
void RunDeviceKernel(const Plan& plan, const PlanStep& step, Device& device,
                     DeviceFunction* function, IdVector<SlotId, c10::IValue>& values);
/// The same of flex attention.
void RunDeviceFlexKernel(const Plan& plan, const PlanStep& step, Device& device,
                         DeviceFunction* function, IdVector<SlotId, c10::IValue>& values);

}  // namespace strata

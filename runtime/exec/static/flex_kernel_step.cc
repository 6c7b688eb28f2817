#include "runtime/exec/static/flex_kernel_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/exec/static/fused_kernel.h"

namespace strata {
namespace {

class FlexKernelStep final : public Step {
 public:
  FlexKernelStep(KernelLibrary::Function function, const FlexKernel& kernel, size_t num_arguments)
      : function_(function),
        units_(kernel.units()),
        unit_work_(kernel.unit_work()),
        addresses_(num_arguments) {}

  void Run(StaticState& /*state*/) override {
    RunKernelUnits(function_, addresses_.data(), units_, unit_work_, nullptr);
  }
  void SetAddress(size_t argument, void* data) override { addresses_[argument] = data; }

 private:
  KernelLibrary::Function function_;
  int64_t units_, unit_work_;
  std::vector<void*> addresses_;  // in the order of FlexKernel
};

}  // namespace

Result<Binding> BindFlexKernel(const PlanStep& step, StepId index, BindContext& context) {
  if (!step.flex_kernel.valid()) return Binding();
  if (context.kernels() == nullptr) return Error(ErrorCode::kInternal, "its kernel was not built");
  std::vector<SlotId> slots;
  step.ForEachOperand([&](SlotId slot) { slots.push_back(slot); });
  const FlexKernel& kernel = context.plan().flex_kernels[step.flex_kernel];
  if (kernel.is_causal && kernel.kind == FlexKernel::Kind::kBackward)
    std::ranges::rotate(slots, slots.begin() + 1);  // ATen's takes the gradient first
  for (const SlotId slot : step.results) {
    context.Place(slot, index);
    slots.push_back(slot);
  }
  auto bound = std::make_unique<FlexKernelStep>(context.kernels()->flex_function(step.flex_kernel),
                                                kernel, slots.size());
  context.BindArguments(*bound, slots);
  return Bound(std::move(bound));
}

}  // namespace strata

#include "runtime/exec/static/flex_kernel_step.h"

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

Result<Binding> BindFlexKernel(const PlanStep& step, int32_t index, BindContext& context) {
  if (step.flex_kernel < 0) return Binding();
  if (context.kernels() == nullptr) return Error(ErrorCode::kInternal, "its kernel was not built");
  const auto kernel = static_cast<size_t>(step.flex_kernel);
  std::vector<int32_t> slots;
  step.ForEachOperand([&](int32_t slot) { slots.push_back(slot); });
  for (const int32_t slot : step.results) {
    context.Place(slot, index);
    slots.push_back(slot);
  }
  auto bound = std::make_unique<FlexKernelStep>(context.kernels()->flex_function(kernel),
                                                context.plan().flex_kernels[kernel], slots.size());
  context.BindArguments(*bound, slots);
  return Bound(std::move(bound));
}

}  // namespace strata

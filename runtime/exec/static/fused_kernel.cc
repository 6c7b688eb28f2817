#include "runtime/exec/static/fused_kernel.h"

#include <algorithm>
#include <vector>

#include "runtime/aten/parallel.h"
#include "runtime/codegen/schedule.h"
#include "runtime/exec/static/dynamic_kernel.h"

namespace strata {
namespace {

/// Elements that are worth another thread; ATen's at::internal::GRAIN_SIZE.
constexpr int64_t kGrainElements = 32768;

class FusedKernel final : public Step {
 public:
  FusedKernel(KernelLibrary::Function function, const Kernel& kernel, const Schedule& schedule)
      : function_(function),
        units_(schedule.units),
        unit_elements_(schedule.unit_elements),
        addresses_(static_cast<size_t>(kernel.num_arguments)),
        dynamic_numbers_(kernel.dynamic_numbers()) {}

  void Run(StaticState& /*state*/) override {
    RunKernelUnits(function_, addresses_.data(), units_, unit_elements_, dynamic_numbers_.data());
  }
  void SetAddress(size_t argument, void* data) override { addresses_[argument] = data; }

 private:
  KernelLibrary::Function function_;
  int64_t units_, unit_elements_;
  std::vector<void*> addresses_;  // operands, then results with memory of their own
  std::vector<int64_t> dynamic_numbers_;
};

}  // namespace

void RunKernelUnits(KernelLibrary::Function function, void* const* addresses, int64_t units,
                    int64_t unit_elements, const int64_t* dynamic_numbers) {
  if (units * unit_elements < 2 * kGrainElements) {
    function(addresses, 0, units, dynamic_numbers);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, unit_elements));
  ParallelFor(units, grain, [&](int64_t begin, int64_t end) {
    function(addresses, begin, end, dynamic_numbers);
  });
}

Result<Binding> BindFusedKernel(const PlanStep& step, StepId index, BindContext& context) {
  if (!step.kernel.valid()) return Binding();
  if (context.kernels() == nullptr) return Error(ErrorCode::kInternal, "its kernel was not built");
  const bool is_fixed =
      step.dynamic_numbers.empty() &&
      std::ranges::all_of(step.args, [&](const PlanArg& arg) { return context.IsFixed(arg.slot); });
  if (!is_fixed) return BindDynamicKernel(step, index, context);
  const Kernel& kernel = context.plan().kernels[step.kernel];
  const Schedule schedule = MakeSchedule(kernel);
  std::vector<SlotId> slots(static_cast<size_t>(kernel.num_arguments));
  for (size_t i = 0; i < step.args.size(); ++i) {
    const at::Tensor& operand = context.TensorAt(step.args[i].slot);
    if (operand.is_conj() || operand.is_neg())
      return Error(ErrorCode::kUnsupported, "reads a value of unknown layout");
    slots[i] = step.args[i].slot;
  }
  for (size_t i = 0; i < step.results.size(); ++i) {
    const SlotId slot = step.results[i];
    const auto argument = static_cast<size_t>(kernel.result_arguments[i]);
    if (argument < step.args.size()) {  // written in place
      if (slot.valid()) context.state().TensorAt(slot) = context.TensorAt(step.args[argument].slot);
      continue;
    }
    if (!slot.valid() || !context.Slot(slot).layout)
      return Error(ErrorCode::kUnsupported, "has a result of unknown layout");
    context.Place(slot, index);
    context.Share(slot, index, [&](SlotId operand) {
      for (size_t input = 0; input < step.args.size(); ++input) {
        if (context.OwnerOf(step.args[input].slot) == context.OwnerOf(operand) &&
            !MayOverwrite(kernel, schedule, static_cast<int32_t>(input), static_cast<int32_t>(i))) {
          return false;
        }
      }
      return true;
    });
    slots[argument] = slot;
  }
  auto bound =
      std::make_unique<FusedKernel>(context.kernels()->function(step.kernel), kernel, schedule);
  context.BindArguments(*bound, slots);
  return Bound(std::move(bound));
}

}  // namespace strata

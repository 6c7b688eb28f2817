#include "runtime/exec/static/dynamic_kernel.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <ATen/ops/empty_strided.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"
#include "runtime/codegen/schedule.h"
#include "runtime/exec/static/fused_kernel.h"

namespace strata {
namespace {

using at::Tensor;

class DynamicKernel final : public Step {
 public:
  DynamicKernel(const PlanStep& step, const Kernel& kernel, KernelLibrary::Function function)
      : step_(step),
        kernel_(kernel),
        function_(function),
        num_unit_dims_(MakeSchedule(kernel).num_outer_dims),
        addresses_(static_cast<size_t>(kernel.num_arguments)),
        dynamic_numbers_(kernel.dynamic_numbers()) {}

  void UseArena(SlotId slot) { arena_slots_.push_back(slot); }

  void Run(StaticState& state) override {
    const auto number_of = [&](int32_t slot) { return *state.numbers[SlotId{slot}]; };
    for (size_t i = 0; i < step_.dynamic_numbers.size(); ++i)
      dynamic_numbers_[i] = step_.dynamic_numbers[i].At(number_of);
    int64_t units = 1, unit_elements = 1;
    for (size_t dim = 0, next = 0; dim < kernel_.sizes.size(); ++dim) {
      const bool is_dynamic = !kernel_.dynamic_sizes.empty() && kernel_.dynamic_sizes[dim];
      (dim < num_unit_dims_ ? units : unit_elements) *=
          is_dynamic ? dynamic_numbers_[next++] : kernel_.sizes[dim];
    }
    converted_.clear();
    for (size_t i = 0; i < step_.args.size(); ++i)
      addresses_[i] = AddressOf(step_.args[i].slot, state);
    for (size_t i = 0; i < step_.results.size(); ++i)
      PrepareResult(i, state);
    if (unit_elements > 0)
      RunKernelUnits(function_, addresses_.data(), units, unit_elements, dynamic_numbers_.data());
  }
  bool UsesArena(SlotId slot) const override {
    return std::ranges::find(arena_slots_, slot) != arena_slots_.end();
  }

 private:
  void PrepareResult(size_t result, StaticState& state) {
    const SlotId slot = step_.results[result];
    const auto argument = static_cast<size_t>(kernel_.result_arguments[result]);
    if (argument < step_.args.size()) {  // written in place
      if (slot.valid()) state.TensorAt(slot) = state.TensorAt(step_.args[argument].slot);
      return;
    }
    if (state.is_dynamic[slot]) {
      const PlanSlot& planned = state.plan.slots[slot];
      state.TensorAt(slot) = state.NewDynamicTensor(slot, state.LayoutNow(*planned.dynamic_layout));
    }
    addresses_[argument] = state.TensorAt(slot).mutable_data_ptr();
  }

  /// The address of an operand, or of a copy in the type that the graph states. Throws if its
  /// layout is not the traced one.
  void* AddressOf(SlotId slot, StaticState& state) {
    const PlanSlot& planned = state.plan.slots[slot];
    const Tensor& tensor = state.TensorAt(slot);
    const PlanLayout expected =
        planned.layout ? *planned.layout : state.LayoutNow(planned.dynamic_layout.value());
    const bool is_expected = !tensor.is_conj() && !tensor.is_neg() &&
                             HasLayout(tensor, expected.sizes, expected.strides);
    if (!is_expected && tensor.numel() > 0) {
      throw std::runtime_error(fmt::format("{} is {}{}, not what was traced", planned.name,
                                           c10::str(tensor.sizes()), c10::str(tensor.strides())));
    }
    if (ToDType(tensor.scalar_type()) == expected.dtype) return tensor.mutable_data_ptr();
    Tensor& copy = converted_.emplace_back(
        at::empty_strided(tensor.sizes(), tensor.strides(), ToScalarType(expected.dtype)));
    return copy.copy_(tensor).mutable_data_ptr();
  }

  const PlanStep& step_;
  const Kernel& kernel_;
  KernelLibrary::Function function_;
  size_t num_unit_dims_;  // leading dimensions that count units
  std::vector<void*> addresses_;
  std::vector<Tensor> converted_;  // of this run
  std::vector<int64_t> dynamic_numbers_;
  std::vector<SlotId> arena_slots_;
};

}  // namespace

Result<Binding> BindDynamicKernel(const PlanStep& step, StepId index, BindContext& context) {
  const Kernel& kernel = context.plan().kernels[step.kernel];
  const auto is_known = [&](SlotId slot) {
    return context.Slot(slot).layout || context.Slot(slot).dynamic_layout;
  };
  for (const PlanArg& arg : step.args) {
    if (!is_known(arg.slot))
      return Error(ErrorCode::kUnsupported, "reads a value of unknown layout");
  }
  auto bound =
      std::make_unique<DynamicKernel>(step, kernel, context.kernels()->function(step.kernel));
  for (size_t i = 0; i < step.results.size(); ++i) {
    const SlotId slot = step.results[i];
    if (kernel.result_arguments[i] < kernel.num_inputs) {
      if (slot.valid()) context.MakeDynamic(slot);
    } else if (!slot.valid() || !is_known(slot)) {
      return Error(ErrorCode::kUnsupported, "has a result of unknown layout");
    } else if (context.Slot(slot).layout) {
      context.Place(slot, index);
    } else {
      context.MakeDynamic(slot);
      if (context.CanUseArena(slot)) bound->UseArena(slot);
    }
  }
  return Bound(std::move(bound));
}

}  // namespace strata

// What a run does with values whose sizes it read from data: kernels of them, and where they lie.

#include <stdexcept>

#include <ATen/ops/empty_strided.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"
#include "runtime/exec/static/static_state.h"

namespace strata {

using at::Tensor;

PlanLayout StaticProgram::State::LayoutNow(const DynamicLayout& layout) const {
  const auto size_of = [&](int32_t slot) { return *numbers[static_cast<size_t>(slot)]; };
  PlanLayout now{.dtype = layout.dtype, .sizes = {}, .strides = {}, .offset = 0};
  for (const SizeForm& size : layout.sizes)
    now.sizes.push_back(size.At(size_of));
  for (const SizeForm& stride : layout.strides)
    now.strides.push_back(stride.At(size_of));
  return now;
}

int64_t StaticProgram::State::BytesNow(int32_t slot) const {
  return plan.slots[static_cast<size_t>(slot)].dynamic_layout->bytes.At(
      [&](int32_t size) { return *numbers[static_cast<size_t>(size)]; });
}

void* StaticProgram::State::OpenPlaceOf(int32_t slot, int64_t bytes) {
  const std::optional<int64_t> offset = dynamic_arena.Allocate(slot, bytes);
  return offset ? Base() + *offset : nullptr;
}

Tensor StaticProgram::State::NewOpenTensor(int32_t slot, const PlanLayout& layout) {
  const int64_t bytes = layout.storage_bytes();
  void* const place = OpenPlaceOf(slot, bytes);
  if (place == nullptr)
    return at::empty_strided(layout.sizes, layout.strides, ToScalarType(layout.dtype));
  return TensorOver({c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
                     c10::DataPtr(place, c10::Device(c10::kCPU)), /*allocator=*/nullptr,
                     /*resizable=*/false},
                    layout);
}

void* StaticProgram::State::AddressNow(int32_t slot) {
  const PlanSlot& planned = plan.slots[static_cast<size_t>(slot)];
  const Tensor& tensor = TensorAt(slot);
  const PlanLayout expected =
      planned.layout ? *planned.layout : LayoutNow(planned.dynamic_layout.value());
  const bool is_expected =
      !tensor.is_conj() && !tensor.is_neg() && LiesAs(tensor, expected.sizes, expected.strides);
  if (!is_expected && tensor.numel() > 0) {
    throw std::runtime_error(fmt::format("{} is {}{}, not what was traced", planned.name,
                                         c10::str(tensor.sizes()), c10::str(tensor.strides())));
  }
  return tensor.mutable_data_ptr();
}

void StaticProgram::State::RunDynamicKernel(StaticStep& step) {
  const PlanStep& planned = plan.steps[static_cast<size_t>(step.index)];
  const Kernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  for (size_t i = 0; i < planned.dynamic_numbers.size(); ++i) {
    step.kernel_numbers[i] = planned.dynamic_numbers[i].At(
        [&](int32_t slot) { return *numbers[static_cast<size_t>(slot)]; });
  }
  int64_t unit_elements = 1;
  step.units = 1;
  for (size_t dim = 0, open = 0; dim < kernel.sizes.size(); ++dim) {
    const bool is_open = !kernel.dynamic_sizes.empty() && kernel.dynamic_sizes[dim];
    (dim < step.num_unit_dims ? step.units : unit_elements) *=
        is_open ? step.kernel_numbers[open++] : kernel.sizes[dim];
  }
  step.grain = GrainOf(unit_elements);
  for (size_t i = 0; i < planned.args.size(); ++i)
    step.addresses[i] = AddressNow(planned.args[i].slot);
  for (size_t i = 0; i < planned.results.size(); ++i) {
    const int32_t slot = planned.results[i];
    const auto argument = static_cast<size_t>(kernel.result_arguments[i]);
    if (argument < planned.args.size()) {
      if (slot >= 0) TensorAt(slot) = TensorAt(planned.args[argument].slot);
      continue;
    }
    if (is_dynamic[static_cast<size_t>(slot)]) {
      const PlanLayout layout = LayoutNow(*plan.slots[static_cast<size_t>(slot)].dynamic_layout);
      TensorAt(slot) = NewOpenTensor(slot, layout);
    }
    step.addresses[argument] = TensorAt(slot).mutable_data_ptr();
  }
  if (unit_elements > 0) RunKernel(step);
}

}  // namespace strata

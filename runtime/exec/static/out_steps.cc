// Steps that write to memory of ours: out-variants, and operators that have a way of their own.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>

#include "ir/ops.h"
#include "passes/compile/pointwise.h"
#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"
#include "runtime/codegen/schedule.h"
#include "runtime/exec/static/static_binder.h"
#include "runtime/exec/static/substitutes.h"

namespace strata {
namespace {

using at::Tensor;
using StepKind = StaticStep::Kind;

/// Elements that are worth waking another thread for; ATen's at::internal::GRAIN_SIZE.
constexpr int64_t kGrainElements = 32768;

}  // namespace

int64_t GrainOf(int64_t unit_elements) {
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, unit_elements));
}

Result<bool> StaticBinder::BindInto(const PlanStep& step, StaticStep& bound) {
  if (step.results.size() == 1) {
    STRATA_TRY(const bool is_simple, BindFillOrCopy(step, bound));
    if (is_simple) return true;
    STRATA_TRY(const bool is_embedding, BindEmbeddingBackward(step, bound));
    if (is_embedding) return true;
    if (BindJoin(step, bound)) return true;
  }
  const PlanStep called = WithTensorOverload(step);
  STRATA_TRY(const c10::OperatorHandle op, FindOp(called.op));
  const std::optional<c10::OperatorHandle> out = OutVariantOf(op);
  if (!out || step.results.size() != op.schema().returns().size()) return false;
  STRATA_TRY(const BoundStep filled, BindStep(called, op));
  FillStack(filled, bound);
  const FusibleOp* fusible = FindFusible(step.op);
  for (const int32_t slot : step.results) {
    Place(slot, bound.index);
    if (fusible != nullptr && fusible->kind == FusionKind::kPointwise) {
      Share(slot, bound.index, [](int32_t) { return true; });
    } else if (ReadsRowsFirst(step)) {
      Share(slot, bound.index, [&](int32_t operand) { return operand == step.args[0].slot; });
    }
    bound.stack.emplace_back(state_->TensorAt(slot));
  }
  bound.kind = StepKind::kCall;
  bound.op = *out;
  return true;
}

Result<bool> StaticBinder::BindFillOrCopy(const PlanStep& step, StaticStep& bound) {
  const int32_t slot = step.results[0];
  if (const std::optional<Fill> fill = FillOf(step)) {
    Place(slot, bound.index);
    if (!fill->number) return true;
    STRATA_TRY(bound.op, FindOp("aten.fill_.Scalar"));
    bound.kind = StepKind::kCall;
    bound.stack = {state_->TensorAt(slot), *fill->number};
    bound.is_plain = true;
    return true;
  }
  if (!IsCopy(step)) return false;
  const Tensor& source = state_->TensorAt(step.args[0].slot);
  const PlanLayout& layout = *Slot(slot).layout;
  Place(slot, bound.index);
  Tensor target = state_->TensorAt(slot);
  if (source.sizes() != target.sizes()) {
    // A reshape that copies: contiguous, and written under the shape of what is copied.
    PlanLayout as_source{.dtype = layout.dtype,
                         .sizes = source.sizes().vec(),
                         .strides = {},
                         .offset = layout.offset};
    int64_t stride = 1;
    for (size_t dim = as_source.sizes.size(); dim-- > 0;) {
      as_source.strides.insert(as_source.strides.begin(), stride);
      stride *= as_source.sizes[dim];
    }
    target = TensorOver(target.storage(), as_source);
    StorageOf(slot).others.push_back(target);
  }
  STRATA_TRY(bound.op, FindOp("aten.copy_.default"));
  bound.kind = StepKind::kCall;
  bound.stack = {target, source, false};
  bound.is_plain = IsPlain(source);
  return true;
}

Result<bool> StaticBinder::BindEmbeddingBackward(const PlanStep& step, StaticStep& bound) {
  if (step.op != "aten.embedding_dense_backward.default" || step.args.size() != 5 ||
      step.args[3].integer >= 0 || step.args[4].integer != 0) {
    return false;
  }
  const Tensor& gradient = state_->TensorAt(step.args[0].slot);
  const Tensor& tokens = state_->TensorAt(step.args[1].slot);
  const int32_t slot = step.results[0];
  const int64_t width = gradient.size(-1);
  // In bf16 the two round at different places.
  if (gradient.scalar_type() != at::kFloat || !gradient.is_contiguous() ||
      !tokens.is_contiguous() || width == 0) {
    return false;
  }
  Place(slot, bound.index);
  const auto flat = [&](int32_t operand, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    const Tensor& tensor = state_->TensorAt(operand);
    Tensor view = TensorOver(tensor.storage(), {.dtype = ToDType(tensor.scalar_type()),
                                                .sizes = std::move(sizes),
                                                .strides = std::move(strides),
                                                .offset = tensor.storage_offset()});
    StorageOf(operand).others.push_back(view);
    return view;
  };
  const Tensor rows = flat(step.args[0].slot, {tokens.numel(), width}, {width, 1});
  const Tensor index = flat(step.args[1].slot, {tokens.numel()}, {1});
  STRATA_TRY(bound.op, FindOp("aten.index_add_.default"));
  bound.kind = StepKind::kCall;
  bound.zero_first = state_->TensorAt(slot);
  bound.stack = {state_->TensorAt(slot), int64_t{0}, index, rows, int64_t{1}};
  bound.is_plain = IsPlain(gradient) && IsPlain(tokens);
  return true;
}

bool StaticBinder::BindJoin(const PlanStep& step, StaticStep& bound) {
  if (step.op != "aten.stack.default" || !step.kwargs.empty()) return false;
  if (step.args.size() > 1 && (step.args[1].kind != ArgKind::kInt || step.args[1].integer != 0))
    return false;
  const int32_t slot = step.results[0];
  std::vector<int32_t> slots;
  for (const PlanArg& element : step.args[0].elements) {
    const Tensor& operand = state_->TensorAt(element.slot);
    if (!IsPlain(operand) || !operand.is_contiguous() ||
        ToDType(operand.scalar_type()) != Slot(slot).layout->dtype) {
      return false;
    }
    bound.units = static_cast<int64_t>(operand.nbytes());
    slots.push_back(element.slot);
  }
  if (slots.empty() || !TensorOver(EmptyStorage(0), *Slot(slot).layout).is_contiguous())
    return false;
  Place(slot, bound.index);
  slots.push_back(slot);
  bound.kind = StepKind::kJoin;
  AddArguments(bound, slots);
  return true;
}

Status StaticBinder::BindKernel(const PlanStep& step, StaticStep& bound) {
  const Kernel& kernel = plan_.kernels[static_cast<size_t>(step.kernel)];
  if (kernels_ == nullptr) return Error(ErrorCode::kInternal, "its kernel was not built");
  const Schedule schedule = MakeSchedule(kernel);
  bound.kind = StepKind::kKernel;
  bound.kernel = step.kernel;
  bound.function = kernels_->function(static_cast<size_t>(step.kernel));
  bound.kernel_numbers = kernel.dynamic_numbers();
  bound.units = schedule.units;
  bound.grain = GrainOf(schedule.unit_elements);
  const bool is_fixed =
      step.dynamic_numbers.empty() &&
      std::ranges::all_of(step.args, [&](const PlanArg& arg) { return IsFixed(arg.slot); });
  if (!is_fixed) return BindDynamicKernel(step, schedule, bound);
  std::vector<int32_t> slots(static_cast<size_t>(kernel.num_arguments), -1);
  for (size_t i = 0; i < step.args.size(); ++i) {
    const int32_t slot = step.args[i].slot;
    if (state_->TensorAt(slot).is_conj() || state_->TensorAt(slot).is_neg()) {
      return Error(ErrorCode::kUnsupported, "reads a value of unknown layout");
    }
    slots[i] = slot;
  }
  for (size_t i = 0; i < step.results.size(); ++i) {
    const int32_t slot = step.results[i];
    const int32_t argument = kernel.result_arguments[i];
    if (argument < kernel.num_inputs) {
      if (slot >= 0) {
        state_->TensorAt(slot) = state_->TensorAt(step.args[static_cast<size_t>(argument)].slot);
      }
      continue;
    }
    if (slot < 0 || !Slot(slot).layout) {
      return Error(ErrorCode::kUnsupported, "has a result of unknown layout");
    }
    Place(slot, bound.index);
    Share(slot, bound.index, [&](int32_t operand) {
      for (size_t input = 0; input < step.args.size(); ++input) {
        if (OwnerOf(step.args[input].slot) == OwnerOf(operand) &&
            !MayOverwrite(kernel, schedule, static_cast<int32_t>(input), static_cast<int32_t>(i))) {
          return false;
        }
      }
      return true;
    });
    slots[static_cast<size_t>(argument)] = slot;
  }
  AddArguments(bound, slots);
  return Ok();
}

Status StaticBinder::BindDynamicKernel(const PlanStep& step, const Schedule& schedule,
                                       StaticStep& bound) {
  const Kernel& kernel = plan_.kernels[static_cast<size_t>(step.kernel)];
  bound.kind = StepKind::kDynamicKernel;
  bound.num_unit_dims = schedule.num_outer_dims;
  bound.addresses.assign(static_cast<size_t>(kernel.num_arguments), nullptr);
  const auto is_known = [&](int32_t slot) {
    return Slot(slot).layout || Slot(slot).dynamic_layout;
  };
  for (const PlanArg& arg : step.args) {
    if (!is_known(arg.slot)) {
      return Error(ErrorCode::kUnsupported, "reads a value of unknown layout");
    }
  }
  for (size_t i = 0; i < step.results.size(); ++i) {
    const int32_t slot = step.results[i];
    if (kernel.result_arguments[i] < kernel.num_inputs) {
      if (slot >= 0) MakeDynamic(slot);
    } else if (slot < 0 || !is_known(slot)) {
      return Error(ErrorCode::kUnsupported, "has a result of unknown layout");
    } else if (Slot(slot).layout) {
      Place(slot, bound.index);
    } else {
      MakeDynamic(slot);
    }
  }
  return Ok();
}

void StaticBinder::AddArguments(StaticStep& bound, const std::vector<int32_t>& slots) {
  for (const int32_t slot : slots) {
    StorageOf(slot).addresses.push_back(
        {.step = static_cast<size_t>(bound.index), .argument = bound.arguments.size()});
    bound.arguments.push_back(state_->TensorAt(slot).unsafeGetTensorImpl());
    bound.addresses.push_back(nullptr);
  }
}

}  // namespace strata

#include "runtime/exec/static/operator_stack.h"

#include <algorithm>
#include <utility>

#include "runtime/aten/out_variants.h"

namespace strata {

using at::Tensor;

Result<OperatorStack> OperatorStack::Bind(const PlanStep& step, const c10::OperatorHandle& op,
                                          BindContext& context) {
  STRATA_TRY(const BoundStep bound, BindStep(step, op));
  OperatorStack call(op);
  call.Fill(bound, context);
  return call;
}

void OperatorStack::Fill(const BoundStep& bound, BindContext& context) {
  stack_ = bound.stack;
  is_plain_ = bound.numbers.empty() && !(bound.tensors.empty() && bound.lists.empty());
  for (const TensorSlot& tensor : bound.tensors) {
    if (context.IsFixed(tensor.slot)) {
      stack_[tensor.arg] = context.TensorAt(tensor.slot);
      is_plain_ = is_plain_ && IsPlain(context.TensorAt(tensor.slot));
    } else {
      dynamic_tensors_.push_back(tensor);
      is_plain_ = false;
    }
  }
  for (const ListSlots& list : bound.lists) {
    const bool is_fixed = std::ranges::all_of(
        list.slots, [&](SlotId slot) { return !slot.valid() || context.IsFixed(slot); });
    if (!is_fixed) {
      dynamic_lists_.push_back(list);
      is_plain_ = false;
      continue;
    }
    stack_[list.arg] =
        list.Collect([&](SlotId slot) -> const Tensor& { return context.TensorAt(slot); });
    for (const SlotId slot : list.slots)
      is_plain_ = is_plain_ && slot.valid() && IsPlain(context.TensorAt(slot));
  }
  dynamic_numbers_ = bound.numbers;
}

void OperatorStack::Call(StaticState& state) const {
  torch::jit::Stack& stack = state.stack;
  stack.assign(stack_.begin(), stack_.end());
  for (const TensorSlot& tensor : dynamic_tensors_)
    stack[tensor.arg] = state.Dynamic(tensor.slot);
  for (const ListSlots& list : dynamic_lists_) {
    stack[list.arg] =
        list.Collect([&](SlotId slot) -> const Tensor& { return state.TensorAt(slot); });
  }
  for (const NumberSlots& list : dynamic_numbers_) {
    c10::List<int64_t> numbers;
    for (const NumberSlots::Element& element : list.elements)
      numbers.push_back(!element.slot.valid() ? element.number
                                              : state.Dynamic(element.slot).toInt());
    stack[list.arg] = std::move(numbers);
  }
  if (is_plain_) {
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } else {
    op_.callBoxed(&stack);
  }
}

Result<torch::jit::Stack> OperatorStack::CallNow() const {
  torch::jit::Stack stack = stack_;
  try {
    op_.callBoxed(&stack);
  } catch (const c10::Error& failure) {
    return Error(ErrorCode::kInternal, "{}", failure.what_without_backtrace());
  }
  return stack;
}

}  // namespace strata

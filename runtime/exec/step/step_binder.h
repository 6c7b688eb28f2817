#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "base/result.h"
#include "runtime/plan/plan.h"

namespace strata {

/// A tensor argument of a step.
struct TensorSlot {
  uint32_t arg = 0;
  SlotId slot;
  bool is_last_use = false;  ///< the reference moves onto the stack
};

/// A list of tensors; an invalid slot is None.
struct ListSlots {
  uint32_t arg = 0;
  std::vector<SlotId> slots;
  bool is_optional = false;

  /// The list, as it stands on a stack; `tensor_of(slot)` gives a tensor.
  template <class Fn>
  c10::IValue Collect(Fn&& tensor_of) const;
};

/// A list of whole numbers of which some are known at run time only.
struct NumberSlots {
  struct Element {
    SlotId slot;  ///< invalid: `number`
    int64_t number = 0;
  };
  uint32_t arg = 0;
  std::vector<Element> elements;
};

struct BoundStep {
  c10::OperatorHandle op;
  torch::jit::Stack stack;  ///< all arguments, empty where a slot is filled in
  std::vector<TensorSlot> tensors;
  std::vector<ListSlots> lists;
  std::vector<NumberSlots> numbers;
  std::vector<SlotId> kills;  ///< what is left to kill after the moves
};

template <class Fn>
c10::IValue ListSlots::Collect(Fn&& tensor_of) const {
  if (is_optional) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const SlotId slot : slots)
      tensors.push_back(!slot.valid() ? std::nullopt : std::optional<at::Tensor>(tensor_of(slot)));
    return tensors;
  }
  c10::List<at::Tensor> tensors;
  for (const SlotId slot : slots)
    tensors.push_back(tensor_of(slot));
  return tensors;
}

/// A number that a step computed, where the schema wants a tensor, becomes one that promotes as a
/// number.
void WrapNumber(c10::IValue& value, const c10::Argument& argument);

/// Fills the stack of `op` from a step's arguments and the operator's schema. A number where the
/// schema wants a tensor becomes one that promotes as a number. Errors: arguments that do not fit.
Result<BoundStep> BindStep(const PlanStep& step, const c10::OperatorHandle& op);

}  // namespace strata

#pragma once
#include <optional>

#include <ATen/core/ivalue.h>

#include "runtime/plan/plan.h"

namespace strata {

// What is known of operators by name: which are better called as another with the same bits.

/// The step with the overload that takes a tensor in place of a number: as one that is wrapped once
/// and not in every call. Same kernel, same promotion. Other steps as they are.
PlanStep WithTensorOverload(const PlanStep& step);

/// A result that is memory of one number.
struct Fill {
  std::optional<c10::IValue> number;  ///< none: whatever is there
};
std::optional<Fill> FillOf(const PlanStep& step);

/// It copies its first operand, perhaps to another dtype or shape.
bool IsCopy(const PlanStep& step);

/// It has read a row of its first operand when it writes that row of the result.
bool ReadsRowsFirst(const PlanStep& step);

}  // namespace strata

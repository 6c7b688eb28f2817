#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// stack along the first dimension of contiguous operands: one operand's memory after the other's.
Result<Binding> BindConcatenation(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

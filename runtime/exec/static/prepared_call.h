#pragma once
#include "runtime/exec/static/bind_context.h"

namespace strata {

/// Frequent elementwise operators of f32 and complex tensors: ATen's iterator over the operands is
/// made once, when their addresses are known, and a run calls ATen's kernel with it. Making it
/// takes as long as some hundred elements.
Result<Binding> BindPreparedCall(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

#pragma once
#include "runtime/exec/static/bind_context.h"

namespace strata {

/// Frequent operators on fixed tensors: ATen's kernel for the CPU is called without the dispatcher
/// and without boxed arguments, which cost as much as a small operator.
Result<Binding> BindDirectCall(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

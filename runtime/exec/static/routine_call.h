#pragma once
#include "runtime/exec/static/bind_context.h"

namespace strata {

/// Operators of ATen that are one call of a routine of MKL: the step makes that very call, with
/// arguments that are known when it is bound. What ATen does before the call costs as much as a
/// small product does. Not bound where LibTorch has no MKL.
Result<Binding> BindRoutineCall(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

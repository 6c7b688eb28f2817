#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// The compiled kernel of a step of flex attention. Empty: the step has none.
/// REQUIRES: operands are fixed, results have static layouts.
Result<Binding> BindFlexKernel(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// The compiled kernel of a fused node whose operands change from run to run, or have
/// data-dependent sizes. REQUIRES: `step` has a kernel.
///
/// Errors: a value has no known layout. A run throws if an operand is laid out in another way than
/// was traced.
Result<Binding> BindDynamicKernel(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

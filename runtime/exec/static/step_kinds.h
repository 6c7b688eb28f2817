#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// Binds a step that is neither a folded view nor a hoisted constant to the first kind that takes
/// it. Errors: what cannot be executed.
Result<Binding> BindToKind(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// A higher-order operator: its bodies allocate what they return, also while other steps' results
/// are in the block.
Result<Binding> BindBodyStep(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

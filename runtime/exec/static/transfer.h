#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// The operators of passes/memory/offloadable.h. Copies run on the program's transfer thread, while
/// the next steps compute; offloaded values have memory of the host that is laid out once.
///
/// What a copy reads and writes is live until its wait: plans see it as an operand there. A value
/// of data-dependent size is offloaded to memory that is allocated in the run.
Result<Binding> BindTransfer(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

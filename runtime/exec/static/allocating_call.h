#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// The operator as it is, for every step that no other kind takes: its results are new tensors.
/// With `arena_results`, ATen's allocator hands out their memory in the block while the
/// operator runs; otherwise the program's tensors adopt their storages. A result whose layout only
/// the run knows becomes the slot's tensor.
///
/// Errors: the operator does not exist, arguments do not fit its schema.
Result<Binding> BindAllocatingCall(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

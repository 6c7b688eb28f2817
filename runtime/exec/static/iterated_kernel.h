#pragma once
#include <cstdint>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// A kernel of ATen, called on an iterator over its operands that is made once and not in every
/// run: what the operator's implementation calls after it has made that iterator. Most of the time
/// of an operator on a small tensor is spent before its kernel.
Result<Binding> BindIteratedKernel(const PlanStep& step, int32_t index, BindContext& context);

}  // namespace strata

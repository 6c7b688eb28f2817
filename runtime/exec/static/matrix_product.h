#pragma once
#include "runtime/exec/static/bind_context.h"

namespace strata {

/// `mm` of f32 matrices: the call of BLAS that ATen makes for these operands, with the same bits.
/// Between `mm` and BLAS, ATen checks and allocates for longer than a product of 16 x 16 takes.
/// Not bound where ATen would copy an operand or call something else.
Result<Binding> BindMatrixProduct(const PlanStep& step, StepId index, BindContext& context);

}  // namespace strata

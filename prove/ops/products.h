#pragma once
#include "base/result.h"
#include "prove/tensor.h"

namespace strata::prove {

/// `[rows, inner]` times `[inner, columns]`. Errors: sizes that do not fit, not numbers.
Result<Tensor> MatrixProduct(const Tensor& a, const Tensor& b);

}  // namespace strata::prove

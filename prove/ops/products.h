#pragma once
#include "base/result.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// A view of matrix `i` of a batch [batch, rows, columns].
Tensor MatrixAt(const Tensor& a, int64_t i);

/// A view of one matrix of `[batch, heads, rows, columns]`.
Tensor HeadOf(const Tensor& a, int64_t batch, int64_t head);
/// A view of a matrix.
Tensor Transposed(const Tensor& a);

/// `[rows, inner]` times `[inner, columns]`. Errors: sizes that do not fit, not numbers.
Result<Tensor> MatrixProduct(const Tensor& a, const Tensor& b);

}  // namespace strata::prove

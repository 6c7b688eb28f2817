#pragma once
#include "base/result.h"
#include "prove/values/call.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// The mean over `dims`, which are kept.
Tensor MeanOver(const Tensor& a, const Sizes& dims);

/// 1 / sqrt(a + eps)
Result<Tensor> InverseRoot(const Tensor& a, Residue eps);

/// The gradient of what a norm subtracts the mean from and multiplies with 1 / deviation:
/// r (g − mean of g − n · mean of g n), n = (x − mean) r, means over `dims`.
Result<Tensor> GradientOfNorm(const Tensor& gradient, const Tensor& normed, const Tensor& inverse,
                              const Sizes& dims);

}  // namespace strata::prove

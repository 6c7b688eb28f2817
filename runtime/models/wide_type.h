#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace strata {

/// What sums, angles and scores of `x` are computed in: fp32, or fp64 where `x` is.
inline at::ScalarType WideType(const at::Tensor& x) {
  return c10::promoteTypes(x.scalar_type(), at::kFloat);
}

}  // namespace strata

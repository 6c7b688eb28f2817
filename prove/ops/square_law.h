#pragma once
#include "prove/values/tensor.h"

namespace strata::prove {

/// The square of a sum is known where one of two summands is 0 and that of the other is known, as
/// where ranks add up norms that each of them has in places of its own.
void KeepSquare(const Tensor& a, const Tensor& b, Tensor& sum);

/// The squares of all elements: of roots, what they are roots of. REQUIRES: numbers.
Tensor SquaresOf(const Tensor& x);

}  // namespace strata::prove

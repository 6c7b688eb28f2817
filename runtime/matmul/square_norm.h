#pragma once
#include <cstdint>

namespace strata {

/// The root of the sum of the squares of `count` floats. Eight sums take every eighth square each,
/// rounded, in their order, and are added one after the other: the bits of ATen's
/// linalg_vector_norm on CPUs with AVX2 (ATen/native/cpu/ReduceOpsKernel.cpp).
///
/// REQUIRES: count is a multiple of 8; ATen's compiler decides how a rest is rounded.
float SquareNorm(const float* values, int64_t count);

}  // namespace strata

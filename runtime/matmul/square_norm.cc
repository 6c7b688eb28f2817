#include "runtime/matmul/square_norm.h"

#include <cmath>

#include "ir/result.h"

namespace strata {

float SquareNorm(const float* values, int64_t count) {
  constexpr int kLanes = 8;
  STRATA_CHECK(count % kLanes == 0);
  // Two halves fit the vectors that every x86-64 processor has. Their products are rounded: this
  // file is compiled without fused multiply-adds.
  using Half = float __attribute__((vector_size(16)));
  Half low{}, high{};
  for (int64_t i = 0; i < count; i += kLanes) {
    Half x, y;
    __builtin_memcpy(&x, values + i, sizeof x);
    __builtin_memcpy(&y, values + i + kLanes / 2, sizeof y);
    low += x * x;
    high += y * y;
  }
  float sum = low[0];
  for (int lane = 1; lane < kLanes; ++lane)
    sum += lane < kLanes / 2 ? low[lane] : high[lane - kLanes / 2];
  return std::sqrt(sum);
}

}  // namespace strata

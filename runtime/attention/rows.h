#pragma once
#include <cstdint>

// What attention does to rows of scores, compiled for AVX-512. Sizes are multiples of kLanes; the
// first `seen` elements of a row are looked at, the others become zeros.

namespace strata::attention_rows {

inline constexpr int64_t kLanes = 16;

/// row = row * scale; their maximum.
float ScaleAndMax(float* row, int64_t seen, float scale);

/// row = exp(row - max); their sum. Within 20 ulp (exp_u20 of ATen/cpu/vec).
float ExpAndSum(float* row, int64_t seen, int64_t size, float max);

/// to = from * factor.
void Multiply(const float* from, int64_t size, float factor, float* to);

/// Sum of x * y.
float Dot(const float* x, const float* y, int64_t size);

/// p = exp(p - log_sum), within 1 ulp (Sleef_expf_u10); gradient = p * (gradient - mean).
void SoftmaxGradient(float* p, float* gradient, int64_t seen, int64_t size, float log_sum,
                     float mean);

}  // namespace strata::attention_rows

#pragma once
#include <cstdint>

namespace strata {

/// A matrix of f32: element (i, j) is data[i * row_stride + j * column_stride].
struct FloatMatrix {
  const float* data;
  int64_t row_stride, column_stride;
};

/// Whether this processor has the instructions that MultiplyFloats is compiled for: AVX2 and FMA.
bool CanMultiplyFloats();

/// `[rows, inner] @ [inner, columns]`, written to rows of `out` that are `out_stride` apart, on
/// ATen's threads, whose number does not change bits.
///
/// Blocks of both operands are packed into scratch memory of the thread, 0.6 MB at most, so that
/// 6 x 16 sums stay in registers and what they read comes from the first two caches (Goto and van
/// de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
///
/// REQUIRES: CanMultiplyFloats(); all sizes are positive; `out` overlaps no operand.
void MultiplyFloats(FloatMatrix a, FloatMatrix b, int64_t rows, int64_t columns, int64_t inner,
                    float* out, int64_t out_stride);

}  // namespace strata

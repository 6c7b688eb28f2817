#pragma once
#include <cstdint>

namespace strata {

/// A matrix of floats in the memory of others.
struct FloatMatrix {
  const float* data;
  int64_t rows, columns;  ///< positive
  int64_t row_stride, column_stride;
};

/// Whether MultiplyFloats is there: this build has BLIS, and the processor has AVX2 and FMA, for
/// which BLIS has kernels.
bool CanMultiplyFloats();

/// Whether BLIS takes it: its elements lie apart, in rows or columns that do not interlace. Strides
/// of dimensions with one element do not matter.
bool IsForBlis(const FloatMatrix& matrix);

/// `a @ b`, written to rows of `out` that are `out_stride` apart, by BLIS on ATen's threads, each
/// of which takes a part of the rows or columns. Each element is summed in an order that depends on
/// a.columns alone, so the number of threads does not change bits.
///
/// REQUIRES: CanMultiplyFloats(); IsForBlis(a) and IsForBlis(b); a.columns == b.rows; `out`
/// overlaps no operand.
void MultiplyFloats(const FloatMatrix& a, const FloatMatrix& b, float* out, int64_t out_stride);

}  // namespace strata

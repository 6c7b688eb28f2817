#include "runtime/aten/float_product.h"

#include <algorithm>

#if STRATA_HAVE_BLIS
#include <blis.h>
#endif

#include "runtime/aten/parallel.h"

namespace strata {
namespace {

/// Multiplications of a part that a thread takes.
constexpr int64_t kLeastWork = int64_t{1} << 20;

/// In a dimension of one element a stride as if there were more.
FloatMatrix WithStrides(FloatMatrix matrix) {
  if (matrix.rows == 1 && matrix.columns == 1) matrix.column_stride = 1;
  if (matrix.rows == 1) {
    matrix.row_stride = matrix.columns * matrix.column_stride;
  } else if (matrix.columns == 1) {
    matrix.column_stride = matrix.rows * matrix.row_stride;
  }
  return matrix;
}

FloatMatrix RowsOf(FloatMatrix matrix, int64_t begin, int64_t end) {
  matrix.data += begin * matrix.row_stride;
  matrix.rows = end - begin;
  return matrix;
}

FloatMatrix ColumnsOf(FloatMatrix matrix, int64_t begin, int64_t end) {
  matrix.data += begin * matrix.column_stride;
  matrix.columns = end - begin;
  return matrix;
}

#if STRATA_HAVE_BLIS
/// On this thread.
void Multiply(const FloatMatrix& left, const FloatMatrix& right, float* out, int64_t out_stride) {
  const FloatMatrix a = WithStrides(left), b = WithStrides(right);
  rntm_t options;
  bli_rntm_init(&options);
  bli_rntm_set_num_threads(1, &options);
  // The kernels for small products sum in an order that depends on all sizes.
  bli_rntm_disable_l3_sup(&options);
  float one = 1.0F, zero = 0.0F;
  bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, a.rows, b.columns, a.columns, &one,
               const_cast<float*>(a.data), a.row_stride, a.column_stride,
               const_cast<float*>(b.data), b.row_stride, b.column_stride, &zero, out,
               std::max(out_stride, b.columns), 1, /*cntx=*/nullptr, &options);
}
#else
void Multiply(const FloatMatrix&, const FloatMatrix&, float*, int64_t) {}
#endif

}  // namespace

bool CanMultiplyFloats() {
#if STRATA_HAVE_BLIS && defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool IsForBlis(const FloatMatrix& matrix) {
  const FloatMatrix m = WithStrides(matrix);
  return m.row_stride > 0 && m.column_stride > 0 &&
         (m.row_stride >= m.columns * m.column_stride || m.column_stride >= m.rows * m.row_stride);
}

void MultiplyFloats(const FloatMatrix& a, const FloatMatrix& b, float* out, int64_t out_stride) {
  const bool cuts_rows = a.rows >= b.columns;
  const int64_t size = std::max(a.rows, b.columns);
  const int64_t work = a.columns * std::min(a.rows, b.columns);  // of a row or column
  ParallelFor(size, (kLeastWork + work - 1) / work, [&](int64_t begin, int64_t end) {
    if (cuts_rows) {
      Multiply(RowsOf(a, begin, end), b, out + begin * out_stride, out_stride);
    } else {
      Multiply(a, ColumnsOf(b, begin, end), out + begin, out_stride);
    }
  });
}

}  // namespace strata

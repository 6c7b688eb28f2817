#include "runtime/aten/float_product.h"

#include <cstdint>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

namespace strata {
namespace {

using at::Tensor;

FloatMatrix MatrixOf(const Tensor& m) {
  return {.data = m.const_data_ptr<float>(),
          .rows = m.size(0),
          .columns = m.size(1),
          .row_stride = m.stride(0),
          .column_stride = m.stride(1)};
}

/// In rows with a gap between them, which stays as it is.
Tensor Multiplied(const Tensor& a, const Tensor& b) {
  const Tensor memory = at::full({a.size(0), b.size(1) + 3}, 7.0F);
  MultiplyFloats(MatrixOf(a), MatrixOf(b), memory.mutable_data_ptr<float>(), memory.stride(0));
  CHECK(at::all(memory.slice(1, b.size(1)) == 7.0F).item<bool>());
  return memory.slice(1, 0, b.size(1));
}

/// Values as normal as at::randn's, of a matrix that lies by rows or by columns.
Tensor Matrix(int64_t rows, int64_t columns, bool is_transposed) {
  return is_transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
}

TEST_CASE("a product of floats is the exact one within rounding, for any sizes and layouts") {
  if (!CanMultiplyFloats()) return;
  constexpr int64_t kSizes[][3] = {{1, 1, 1},     {6, 16, 256},   {5, 15, 7},   {7, 17, 257},
                                   {97, 513, 40}, {200, 30, 600}, {12, 1100, 3}};
  for (const auto& [rows, columns, inner] : kSizes) {
    for (const bool left : {false, true}) {
      for (const bool right : {false, true}) {
        INFO(rows, " x ", inner, " x ", columns, ", transposed: ", left, " ", right);
        const Tensor a = Matrix(rows, inner, left), b = Matrix(inner, columns, right);
        const Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
        const Tensor sizes = at::mm(a.to(at::kDouble).abs(), b.to(at::kDouble).abs());
        CHECK(((Multiplied(a, b) - exact).abs() <= 1e-6 * sizes).all().item<bool>());
      }
    }
  }
}

TEST_CASE("the number of threads does not change the bits of a product of floats") {
  if (!CanMultiplyFloats()) return;
  const int threads = at::get_num_threads();
  for (const auto& [rows, columns] : {std::pair(230, 190), std::pair(50, 1000)}) {
    const Tensor a = Matrix(rows, 300, false), b = Matrix(300, columns, true);
    at::set_num_threads(1);
    const Tensor alone = Multiplied(a, b);
    at::set_num_threads(3);
    CHECK(at::equal(Multiplied(a, b), alone));
  }
  at::set_num_threads(threads);
}

TEST_CASE("BLIS takes matrices of which elements lie apart, in rows or columns") {
  const Tensor matrix = at::randn({6, 8});
  CHECK(IsForBlis(MatrixOf(matrix)));
  CHECK(IsForBlis(MatrixOf(matrix.t())));
  CHECK(IsForBlis(MatrixOf(matrix.slice(0, 0, 6, 2).slice(1, 0, 8, 3))));
  CHECK(IsForBlis(MatrixOf(matrix.slice(0, 0, 1).expand({1, 8}))));
  CHECK_FALSE(IsForBlis(MatrixOf(matrix.slice(0, 0, 1).expand({3, 8}))));
  CHECK_FALSE(IsForBlis(MatrixOf(matrix.as_strided({3, 3}, {2, 1}))));
  // What strides of one row or column say does not matter.
  for (const int64_t stride : {0, 1, 5}) {
    const Tensor row = matrix.as_strided({1, 8}, {stride, 1}),
                 column = matrix.as_strided({8, 1}, {1, stride}),
                 one = matrix.as_strided({1, 1}, {stride, stride});
    for (const Tensor& m : {row, column, one})
      CHECK(IsForBlis(MatrixOf(m)));
    if (!CanMultiplyFloats()) continue;
    const Tensor exact = at::mm(column.to(at::kDouble), row.to(at::kDouble));
    CHECK(at::allclose(Multiplied(column, row).to(at::kDouble), exact));
    CHECK(at::allclose(Multiplied(row, column), at::mm(row, column)));
    CHECK(at::allclose(Multiplied(one, row), at::mm(one, row)));
  }
}

}  // namespace
}  // namespace strata

#include "prove/ops/products.h"

#include <algorithm>
#include <array>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

Residue DotOfCodes(const Residue* a, const Residue* b, int64_t count) {
  Residue sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum = prove::Add(sum, prove::Mul(a[i], b[i]));
  return sum;
}

/// The products of a row with columns, one after the other in memory. Additions to one sum wait for
/// each other, those to two sums do not. REQUIRES: numbers.
__extension__ template <size_t kColumns>
void Dots(const Residue* row, const Residue* columns, int64_t count, std::vector<uint64_t>& sums) {
  constexpr int64_t kProducts = 32;  // of less than 2^122 each: their sum fits
  std::array<Residue, kColumns> sum = {};
  for (int64_t begin = 0; begin < count; begin += kProducts) {
    std::array<unsigned __int128, kColumns> part = {};
    const int64_t end = std::min(begin + kProducts, count);
    for (int64_t i = begin; i < end; ++i)
      for (size_t column = 0; column < kColumns; ++column)
        part[column] += static_cast<unsigned __int128>(row[i]) *
                        columns[static_cast<int64_t>(column) * count + i];
    for (size_t column = 0; column < kColumns; ++column)
      sum[column] = prove::Add(sum[column], internal::Reduce(part[column]));
  }
  sums.insert(sums.end(), sum.begin(), sum.end());
}

Status CheckNumbers(const Tensor& a, const Tensor& b) {
  if (a.domain() != Domain::kFloat || b.domain() != Domain::kFloat)
    return Error(ErrorCode::kUnsupported, "a product of tensors that are not numbers");
  return Ok();
}

Result<Values> EvaluateMm(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "mat2"));
  STRATA_TRY(Tensor product, MatrixProduct(a, b));
  return Values{std::move(product)};
}

Result<Tensor> BatchProduct(const Tensor& a, const Tensor& b) {
  STRATA_RETURN_IF_ERROR(CheckNumbers(a, b));
  if (a.dim() != 3 || b.dim() != 3 || a.size(0) != b.size(0))
    return Error(ErrorCode::kInvalid, "not batches of matrices");
  std::vector<uint64_t> words;
  for (int64_t i = 0; i < a.size(0); ++i) {
    STRATA_TRY(const Tensor product, MatrixProduct(MatrixAt(a, i), MatrixAt(b, i)));
    const std::vector<uint64_t>& part = product.storage()->words;
    words.insert(words.end(), part.begin(), part.end());
  }
  return OfWords(Domain::kFloat, {a.size(0), a.size(1), b.size(2)}, std::move(words));
}

Result<Values> EvaluateBmm(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "mat2"));
  STRATA_TRY(Tensor product, BatchProduct(a, b));
  return Values{std::move(product)};
}

/// beta * self + alpha * mat1 @ mat2
template <Result<Tensor> (*kProduct)(const Tensor&, const Tensor&)>
Result<Values> EvaluateAddProduct(Call& call) {
  STRATA_TRY(const Tensor self, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1));
  STRATA_TRY(const Tensor b, call.TensorAt(2));
  STRATA_TRY(const Residue beta, call.NumberAt(SIZE_MAX, "beta", 1));
  STRATA_TRY(const Residue alpha, call.NumberAt(SIZE_MAX, "alpha", 1));
  STRATA_TRY(const Tensor product, kProduct(a, b));
  STRATA_TRY(Tensor sum, Add(Scale(self, beta), Scale(product, alpha)));
  return Values{std::move(sum)};
}

constexpr OpDefinition kProductsOps[] = {
    {"aten.addmm", EvaluateAddProduct<MatrixProduct>},
    {"aten.baddbmm", EvaluateAddProduct<BatchProduct>},
    {"aten.bmm", EvaluateBmm},
    {"aten.mm", EvaluateMm},
};

}  // namespace

Tensor HeadOf(const Tensor& a, int64_t batch, int64_t head) {
  return {a.domain(),
          a.storage(),
          {a.size(2), a.size(3)},
          {a.strides()[2], a.strides()[3]},
          a.offset() + batch * a.strides()[0] + head * a.strides()[1]};
}

Tensor Transposed(const Tensor& a) {
  return {a.domain(),
          a.storage(),
          {a.size(1), a.size(0)},
          {a.strides()[1], a.strides()[0]},
          a.offset()};
}

Tensor MatrixAt(const Tensor& a, int64_t i) {
  return {a.domain(),
          a.storage(),
          {a.size(1), a.size(2)},
          {a.strides()[1], a.strides()[2]},
          a.offset() + i * a.strides()[0]};
}

Result<Tensor> MatrixProduct(const Tensor& a, const Tensor& b) {
  STRATA_RETURN_IF_ERROR(CheckNumbers(a, b));
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0))
    return Error(ErrorCode::kInvalid, "matrices that cannot be multiplied");
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  const Tensor columns_of_b(b.domain(), b.storage(), {columns, inner},
                            {b.strides()[1], b.strides()[0]}, b.offset());
  const std::vector<uint64_t> x = a.Read(), y = columns_of_b.Read();
  const bool has_codes = !std::ranges::all_of(x, IsNumber) || !std::ranges::all_of(y, IsNumber);
  std::vector<uint64_t> words;
  words.reserve(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    const uint64_t* row = x.data() + i * inner;
    for (int64_t j = 0; j < columns;) {
      const uint64_t* column = y.data() + j * inner;
      if (has_codes) {
        words.push_back(DotOfCodes(row, column, inner));
        ++j;
      } else if (j + 1 < columns) {
        Dots<2>(row, column, inner, words);
        j += 2;
      } else {
        Dots<1>(row, column, inner, words);
        ++j;
      }
    }
  }
  return OfWords(Domain::kFloat, {rows, columns}, std::move(words));
}

std::span<const OpDefinition> ProductOps() {
  return kProductsOps;
}

}  // namespace strata::prove

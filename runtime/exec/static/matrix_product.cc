#include "runtime/exec/static/matrix_product.h"

#include <array>
#include <climits>
#include <memory>
#include <optional>

#include <ATen/Context.h>

#include "runtime/aten/out_variants.h"

/// Of MKL, which LibTorch contains. Matrices are stored by columns, dimensions are `int`.
extern "C" void sgemm_(const char* transa, const char* transb, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc)
    __attribute__((weak));

namespace strata {
namespace {

using at::Tensor;

/// How a matrix of rows lies, for BLAS, to which it is one of columns.
struct Stored {
  char transposed = 'n';
  int stride = 0;  ///< of rows; of columns where it is transposed
};

/// As `addmm_impl_cpu_` decides (aten/src/ATen/native/LinearAlgebra.cpp); none: ATen copies it.
/// REQUIRES: no dimension is smaller than 2, where strides mean nothing.
std::optional<Stored> StoredAs(const Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  const int64_t row_stride = matrix.stride(0), column_stride = matrix.stride(1);
  if (column_stride == 1 && row_stride >= columns) return Stored{'n', static_cast<int>(row_stride)};
  if (row_stride == 1 && column_stride >= rows) return Stored{'t', static_cast<int>(column_stride)};
  return std::nullopt;
}

bool IsFloatMatrix(const Tensor& tensor) {
  if (!IsPlain(tensor) || tensor.scalar_type() != at::kFloat || tensor.dim() != 2) return false;
  for (const int64_t dim : {0, 1}) {
    if (tensor.size(dim) < 2 || tensor.size(dim) > INT_MAX || tensor.stride(dim) > INT_MAX)
      return false;
  }
  return true;
}

/// ATen calls BLAS for f32 matrices: no setting lets oneDNN round them.
bool CallsBlas() {
#if defined(__x86_64__)
  using enum at::Float32Precision;
  const at::Float32Precision precision =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return at::hasMKL() && sgemm_ != nullptr && (precision == NONE || precision == IEEE);
#else
  return false;
#endif
}

class MatrixProduct final : public Step {
 public:
  MatrixProduct(const Tensor& a, const Tensor& b, Stored a_is, Stored b_is)
      : rows_(static_cast<int>(a.size(0))),
        inner_(static_cast<int>(a.size(1))),
        columns_(static_cast<int>(b.size(1))),
        a_(a_is),
        b_(b_is) {}

  /// By columns, the result is the product of `b` and `a`.
  void Run(StaticState& /*state*/) override {
    const float one = 1, zero = 0;
    sgemm_(&b_.transposed, &a_.transposed, &columns_, &rows_, &inner_, &one, addresses_[1],
           &b_.stride, addresses_[0], &a_.stride, &zero, addresses_[2], &columns_);
  }
  void SetAddress(size_t argument, void* data) override {
    addresses_[argument] = static_cast<float*>(data);
  }

 private:
  int rows_, inner_, columns_;
  Stored a_, b_;
  std::array<float*, 3> addresses_{};  // of a, b and the result
};

}  // namespace

Result<Binding> BindMatrixProduct(const PlanStep& step, StepId index, BindContext& context) {
  if (step.op != "aten.mm.default" || !CallsBlas()) return Binding();
  const SlotId a_slot = step.args[0].slot, b_slot = step.args[1].slot, result = step.results[0];
  const Tensor &a = context.TensorAt(a_slot), &b = context.TensorAt(b_slot);
  if (!IsFloatMatrix(a) || !IsFloatMatrix(b)) return Binding();
  const std::optional<Stored> a_is = StoredAs(a), b_is = StoredAs(b);
  const PlanLayout& layout = *context.Slot(result).layout;
  const bool is_by_rows = layout.dtype == DType::kF32 &&
                          layout.sizes == std::vector{a.size(0), b.size(1)} &&
                          layout.strides == std::vector<int64_t>{b.size(1), 1};
  if (!a_is || !b_is || !is_by_rows) return Binding();
  context.Place(result, index);
  auto bound = std::make_unique<MatrixProduct>(a, b, *a_is, *b_is);
  context.BindArguments(*bound, {a_slot, b_slot, result});
  return Bound(std::move(bound));
}

}  // namespace strata

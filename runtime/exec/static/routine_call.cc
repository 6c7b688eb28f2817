#include "runtime/exec/static/routine_call.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Context.h>

#include "runtime/aten/out_variants.h"

// MKL is part of LibTorch, without its headers.
extern "C" {
[[gnu::weak]] void sgemm_(const char* transpose_a, const char* transpose_b, const int* m,
                          const int* n, const int* k, const float* alpha, const float* a,
                          const int* lda, const float* b, const int* ldb, const float* beta,
                          float* c, const int* ldc);
[[gnu::weak]] void vmsSqrt(int count, const float* x, float* y, int64_t mode);
}

namespace strata {
namespace {

using at::Tensor;

/// A matrix of floats as BLAS reads it, by columns.
struct BlasMatrix {
  char transpose = 'n';
  int leading = 0;  // elements from one column, or row, to the next
};

/// Whether ATen calls the routine for such a size: it multiplies vectors with another one.
bool IsRoutineSize(int64_t size) {
  return size > 1 && size <= std::numeric_limits<int>::max();
}

/// As ATen's addmm_impl_cpu_ sees the transpose of `matrix`; none: it would copy it.
std::optional<BlasMatrix> ByColumns(const Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  const int64_t row_stride = matrix.stride(0), column_stride = matrix.stride(1);
  if (column_stride == 1 && row_stride >= columns && IsRoutineSize(row_stride))
    return BlasMatrix{'n', static_cast<int>(row_stride)};
  if (row_stride == 1 && column_stride >= rows && IsRoutineSize(column_stride))
    return BlasMatrix{'t', static_cast<int>(column_stride)};
  return std::nullopt;
}

bool IsFloat(const Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && IsPlain(tensor);
}

/// c = a * b: by columns, the transpose of c is the transpose of b times that of a.
class MatrixProduct final : public Step {
 public:
  MatrixProduct(BlasMatrix a, BlasMatrix b, int rows, int inner, int columns)
      : a_(a), b_(b), rows_(rows), inner_(inner), columns_(columns) {}

  void Run(StaticState& /*state*/) override {
    const float one = 1, zero = 0;
    sgemm_(&b_.transpose, &a_.transpose, &columns_, &rows_, &inner_, &one, addresses_[1],
           &b_.leading, addresses_[0], &a_.leading, &zero, addresses_[2], &columns_);
  }
  void SetAddress(size_t argument, void* data) override {
    addresses_[argument] = static_cast<float*>(data);
  }
  bool CallsOperator() const override { return true; }

 private:
  BlasMatrix a_, b_;
  int rows_, inner_, columns_;
  float* addresses_[3] = {};  // a, b, c
};

class SquareRoot final : public Step {
 public:
  explicit SquareRoot(int count) : count_(count) {}

  void Run(StaticState& /*state*/) override {
    // VML_HA | VML_FTZDAZ_OFF | VML_ERRMODE_IGNORE, as ATen calls it.
    constexpr int64_t kMode = 0x2 | 0x140000 | 0x100;
    vmsSqrt(count_, addresses_[0], addresses_[1], kMode);
  }
  void SetAddress(size_t argument, void* data) override {
    addresses_[argument] = static_cast<float*>(data);
  }
  bool CallsOperator() const override { return true; }

 private:
  int count_;
  float* addresses_[2] = {};  // operand, result
};

Binding BindMatrixProduct(const PlanStep& step, StepId index, BindContext& context) {
  const SlotId a = step.args[0].slot, b = step.args[1].slot, c = step.results[0];
  const Tensor &left = context.TensorAt(a), &right = context.TensorAt(b);
  if (!IsFloat(left) || !IsFloat(right)) return Binding();
  const int64_t rows = left.size(0), inner = left.size(1), columns = right.size(1);
  const std::optional<BlasMatrix> as_a = ByColumns(left), as_b = ByColumns(right);
  if (!IsRoutineSize(rows) || !IsRoutineSize(inner) || !IsRoutineSize(columns) || !as_a || !as_b)
    return Binding();
  if (context.Slot(c).layout->strides != std::vector<int64_t>{columns, 1}) return Binding();
  context.Place(c, index);
  auto bound = std::make_unique<MatrixProduct>(*as_a, *as_b, static_cast<int>(rows),
                                               static_cast<int>(inner), static_cast<int>(columns));
  context.BindArguments(*bound, {a, b, c});
  return Bound(std::move(bound));
}

Binding BindSquareRoot(const PlanStep& step, StepId index, BindContext& context) {
  const SlotId operand = step.args[0].slot, result = step.results[0];
  const Tensor& x = context.TensorAt(operand);
  if (!IsFloat(x) || !x.is_contiguous() || !IsRoutineSize(x.numel())) return Binding();
  if (context.Slot(result).layout->strides != x.strides().vec()) return Binding();
  context.Place(result, index);
  context.ShareOperands(step, result, index);
  auto bound = std::make_unique<SquareRoot>(static_cast<int>(x.numel()));
  context.BindArguments(*bound, {operand, result});
  return Bound(std::move(bound));
}

}  // namespace

Result<Binding> BindRoutineCall(const PlanStep& step, StepId index, BindContext& context) {
  if (!at::hasMKL()) return Binding();  // ATen may call another library
  if (step.op == "aten.mm.default" && sgemm_ != nullptr)
    return BindMatrixProduct(step, index, context);
  if (step.op == "aten.sqrt.default" && vmsSqrt != nullptr)
    return BindSquareRoot(step, index, context);
  return Binding();
}

}  // namespace strata

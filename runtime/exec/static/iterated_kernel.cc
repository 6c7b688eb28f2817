#include "runtime/exec/static/iterated_kernel.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorIterator.h>
#include <ATen/native/Activation.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/UnaryOps.h>

#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"

namespace strata {
namespace {

using at::Tensor;
using at::TensorIterator;

/// How an operator makes the iterator for its kernel, and which kernel it calls; as its
/// implementation in aten/src/ATen/native does (BinaryOps.cpp, UnaryOps.cpp, Activation.cpp,
/// ReduceOps.cpp).
struct IteratedOp {
  std::string_view op;
  size_t num_operands = 1;
  bool is_reduction = false;
  TensorIterator (*iterate)(const PlanStep& step, std::span<const Tensor> operands,
                            const Tensor& result);
  void (*run)(TensorIterator& iterator);
};

TensorIterator Binary(const PlanStep& /*step*/, std::span<const Tensor> operands,
                      const Tensor& result) {
  return TensorIterator::binary_op(const_cast<Tensor&>(result), operands[0], operands[1]);
}

TensorIterator Unary(const PlanStep& /*step*/, std::span<const Tensor> operands,
                     const Tensor& result) {
  return TensorIterator::unary_op(const_cast<Tensor&>(result), operands[0]);
}

TensorIterator UnaryFloat(const PlanStep& /*step*/, std::span<const Tensor> operands,
                          const Tensor& result) {
  return TensorIterator::unary_float_op(const_cast<Tensor&>(result), operands[0]);
}

/// linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *,
///                    ScalarType? dtype=None) -> Tensor
TensorIterator WholeNorm(const PlanStep& /*step*/, std::span<const Tensor> operands,
                         const Tensor& result) {
  return at::native::make_reduction("vector_norm", const_cast<Tensor&>(result), operands[0],
                                    at::OptionalIntArrayRef(at::IntArrayRef{}), /*keepdim=*/false,
                                    result.scalar_type());
}

/// sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)
///     -> Tensor
TensorIterator RowSum(const PlanStep& step, std::span<const Tensor> operands,
                      const Tensor& result) {
  std::vector<int64_t> dims;
  for (const PlanArg& dim : step.args[1].elements)
    dims.push_back(dim.integer);
  const bool keeps_dims = step.args.size() > 2 && step.args[2].integer != 0;
  return at::meta::make_reduction(operands[0], result, at::OptionalIntArrayRef(dims), keeps_dims,
                                  result.scalar_type());
}

constexpr IteratedOp kOps[] = {
    {"aten.linalg_vector_norm.default", 1, true, WholeNorm,
     [](TensorIterator& iterator) { at::native::norm_stub(at::kCPU, iterator, 2.0); }},
    {"aten.mul.Tensor", 2, false, Binary,
     [](TensorIterator& iterator) { at::native::mul_stub(at::kCPU, iterator); }},
    {"aten.silu.default", 1, false, Unary,
     [](TensorIterator& iterator) { at::native::silu_stub(at::kCPU, iterator); }},
    {"aten.silu_backward.default", 2, false, Binary,
     [](TensorIterator& iterator) { at::native::silu_backward_stub(at::kCPU, iterator); }},
    {"aten.sqrt.default", 1, false, UnaryFloat,
     [](TensorIterator& iterator) { at::native::sqrt_stub(at::kCPU, iterator); }},
    {"aten.sum.dim_IntList", 1, true, RowSum,
     [](TensorIterator& iterator) { at::native::sum_stub(at::kCPU, iterator); }},
};

class IteratedKernel final : public Step {
 public:
  IteratedKernel(const IteratedOp& op, const PlanStep& step, std::vector<Tensor> operands,
                 Tensor result)
      : op_(op), step_(step), operands_(std::move(operands)), result_(std::move(result)) {}

  void Run(StaticState& /*state*/) override {
    if (!iterator_) iterator_.emplace(op_.iterate(step_, operands_, result_));
    op_.run(*iterator_);
  }
  /// The iterator knows addresses.
  void SetAddress(size_t /*argument*/, void* /*data*/) override { iterator_.reset(); }
  bool CallsOperator() const override { return true; }

 private:
  const IteratedOp& op_;
  const PlanStep& step_;
  std::vector<Tensor> operands_;
  Tensor result_;
  std::optional<TensorIterator> iterator_;
};

bool IsTwo(const PlanArg& number) {
  return (number.kind == ArgKind::kFloat && number.real == 2.0) ||
         (number.kind == ArgKind::kInt && number.integer == 2);
}

/// Arguments with which the operator does no more than iterate.
bool HasPlainArguments(const PlanStep& step, const IteratedOp& op) {
  if (!step.kwargs.empty() || step.args.size() < op.num_operands) return false;
  if (op.op == "aten.linalg_vector_norm.default") {
    return (step.args.size() < 2 || IsTwo(step.args[1])) &&
           (step.args.size() < 3 || step.args[2].kind == ArgKind::kNone);
  }
  if (op.op == "aten.sum.dim_IntList") {
    return step.args.size() >= 2 && step.args[1].kind == ArgKind::kList &&
           !step.args[1].elements.empty();
  }
  return step.args.size() == op.num_operands;
}

}  // namespace

Result<Binding> BindIteratedKernel(const PlanStep& step, int32_t index, BindContext& context) {
  const auto* const op = std::ranges::find(kOps, step.op, &IteratedOp::op);
  if (op == std::end(kOps) || !HasPlainArguments(step, *op)) return Binding();
  const int32_t slot = step.results[0];
  // An iterator of a reduction refers to the storage of its result, as whoever holds an output
  // does.
  if (op->is_reduction && context.assignment().is_output(slot)) return Binding();
  const DType dtype = context.Slot(slot).layout->dtype;
  std::vector<int32_t> slots;
  std::vector<Tensor> operands;
  for (size_t i = 0; i < op->num_operands; ++i) {
    if (step.args[i].kind != ArgKind::kValue) return Binding();
    slots.push_back(step.args[i].slot);
    operands.push_back(context.TensorAt(slots.back()));
    const Tensor& operand = operands.back();
    // No casts, and more than the one element for which norms take another way.
    if (!IsPlain(operand) || ToDType(operand.scalar_type()) != dtype || operand.numel() < 2 ||
        context.StorageOf(slots.back()).kind == StaticStorage::Kind::kAdopted) {
      return Binding();
    }
  }
  const Tensor& result = context.Place(slot, index);
  context.ShareOperands(step, slot, index);
  auto bound = std::make_unique<IteratedKernel>(*op, step, std::move(operands), result);
  slots.push_back(slot);
  context.BindArguments(*bound, slots);
  return Bound(std::move(bound));
}

}  // namespace strata

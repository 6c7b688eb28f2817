#include "runtime/exec/static/library_call.h"

#include <utility>
#include <vector>

#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"
#include "runtime/exec/static/operator_stack.h"
#include "runtime/exec/static/substitutes.h"
#include "runtime/plan/in_flight.h"

namespace strata {
namespace {

using at::Tensor;

/// Calls one operator, or several after each other.
class LibraryCall final : public Step {
 public:
  explicit LibraryCall(std::vector<OperatorStack> calls) : calls_(std::move(calls)) {}

  void Run(StaticState& state) override {
    for (const OperatorStack& call : calls_)
      call.Call(state);
  }
  bool CallsOperator() const override { return true; }

 private:
  std::vector<OperatorStack> calls_;
};

Binding Calls(std::vector<OperatorStack> calls) {
  return Bound(std::make_unique<LibraryCall>(std::move(calls)));
}

PlanLayout ContiguousLayout(DType dtype, std::vector<int64_t> sizes, int64_t offset) {
  PlanLayout layout{.dtype = dtype, .sizes = std::move(sizes), .strides = {}, .offset = offset};
  layout.strides.resize(layout.sizes.size());
  int64_t stride = 1;
  for (size_t dim = layout.sizes.size(); dim-- > 0;) {
    layout.strides[dim] = stride;
    stride *= layout.sizes[dim];
  }
  return layout;
}

}  // namespace

Result<Binding> BindFill(const PlanStep& step, StepId index, BindContext& context) {
  const std::optional<Fill> fill = FillOf(step);
  if (!fill || step.results.size() != 1) return Binding();
  const Tensor& result = context.Place(step.results[0], index);
  if (!fill->number) return Bound(nullptr);  // any content will do
  // fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
  STRATA_TRY(const c10::OperatorHandle op, FindOp("aten.fill_.Scalar"));
  return Calls({OperatorStack(op, {result, *fill->number}, /*is_plain=*/true)});
}

Result<Binding> BindCopy(const PlanStep& step, StepId index, BindContext& context) {
  if (!IsCopy(step) || step.results.size() != 1) return Binding();
  const SlotId slot = step.results[0];
  const Tensor& source = context.TensorAt(step.args[0].slot);
  Tensor target = context.Place(slot, index);
  if (source.sizes() != target.sizes()) {
    // A reshape that copies: contiguous, and written under the shape of its source.
    const PlanLayout& layout = *context.Slot(slot).layout;
    target =
        context.Alias(slot, ContiguousLayout(layout.dtype, source.sizes().vec(), layout.offset));
  }
  // copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
  STRATA_TRY(const c10::OperatorHandle op, FindOp("aten.copy_.default"));
  return Calls({OperatorStack(op, {target, source, false}, IsPlain(source))});
}

Result<Binding> BindEmbeddingGradient(const PlanStep& step, StepId index, BindContext& context) {
  // embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights,
  //                          SymInt padding_idx, bool scale_grad_by_freq) -> Tensor
  if (step.op != "aten.embedding_dense_backward.default" || step.args.size() != 5) return Binding();
  const SlotId gradient_slot = step.args[0].slot, token_slot = step.args[1].slot;
  const bool has_padding = step.args[3].integer >= 0, is_scaled = step.args[4].integer != 0;
  if (has_padding || is_scaled) return Binding();
  const Tensor& gradient = context.TensorAt(gradient_slot);  // [batch, tokens, width]
  const Tensor& tokens = context.TensorAt(token_slot);       // [batch, tokens]
  const int64_t width = gradient.size(-1);
  // In bf16 the two operators round in different places.
  if (gradient.scalar_type() != at::kFloat || !gradient.is_contiguous() ||
      !tokens.is_contiguous() || width == 0) {
    return Binding();
  }
  const Tensor& result = context.Place(step.results[0], index);  // [weights, width]
  const Tensor rows = context.Alias(                             // [batch * tokens, width]
      gradient_slot,
      ContiguousLayout(DType::kF32, {tokens.numel(), width}, gradient.storage_offset()));
  const Tensor flat_tokens = context.Alias(  // [batch * tokens]
      token_slot,
      ContiguousLayout(ToDType(tokens.scalar_type()), {tokens.numel()}, tokens.storage_offset()));
  // zero_(Tensor(a!) self) -> Tensor(a!)
  STRATA_TRY(const c10::OperatorHandle zero, FindOp("aten.zero_.default"));
  // index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)
  STRATA_TRY(const c10::OperatorHandle add, FindOp("aten.index_add_.default"));
  const bool is_plain = IsPlain(gradient) && IsPlain(tokens);
  return Calls({OperatorStack(zero, {result}, /*is_plain=*/true),
                OperatorStack(add, {result, int64_t{0}, flat_tokens, rows, int64_t{1}}, is_plain)});
}

Result<Binding> BindOutVariant(const PlanStep& step, StepId index, BindContext& context) {
  const PlanStep called = WithTensorOverload(step);
  STRATA_TRY(const c10::OperatorHandle op, FindOp(called.op));
  const std::optional<c10::OperatorHandle> out = OutVariantOf(op);
  if (!out || step.results.size() != op.schema().returns().size()) return Binding();
  STRATA_TRY(OperatorStack call, OperatorStack::Bind(called, op, context));
  call.SetOperator(*out);
  for (const SlotId slot : step.results) {
    call.Append(context.Place(slot, index));
    context.ShareOperands(step, slot, index);
  }
  return Calls({std::move(call)});
}

Result<Binding> BindWait(const PlanStep& step, StepId /*index*/, BindContext& context) {
  const bool is_fixed = IsWait(step.op) && step.args.size() == 1 && step.args[0].slot.valid() &&
                        context.IsFixed(step.args[0].slot);
  if (!is_fixed || step.results.size() != 1) return Binding();
  STRATA_TRY(const c10::OperatorHandle op, FindOp(step.op));
  STRATA_TRY(OperatorStack call, OperatorStack::Bind(step, op, context));
  if (step.results[0].valid())
    context.state().TensorAt(step.results[0]) = context.TensorAt(step.args[0].slot);
  return Calls({std::move(call)});
}

Result<Binding> BindInPlace(const PlanStep& step, StepId /*index*/, BindContext& context) {
  bool is_fixed = step.mutates;
  step.ForEachOperand([&](SlotId slot) { is_fixed = is_fixed && context.IsFixed(slot); });
  if (!is_fixed) return Binding();
  for (const SlotId slot : step.results) {
    if (slot.valid() && !context.OperandWrittenAs(step, slot).valid()) return Binding();
  }
  const PlanStep called = WithTensorOverload(step);
  STRATA_TRY(const c10::OperatorHandle op, FindOp(called.op));
  STRATA_TRY(OperatorStack call, OperatorStack::Bind(called, op, context));
  for (const SlotId slot : step.results) {
    if (slot.valid())
      context.state().TensorAt(slot) = context.TensorAt(context.OperandWrittenAs(step, slot));
  }
  return Calls({std::move(call)});
}

}  // namespace strata

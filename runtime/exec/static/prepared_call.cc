#include "runtime/exec/static/prepared_call.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/mul_native.h>
#include <ATen/ops/silu_backward_native.h>
#include <ATen/ops/silu_native.h>
#include <ATen/ops/sqrt_native.h>

#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"

namespace strata {
namespace {

using at::Tensor;

/// A structured operator of ATen that writes to a tensor of the size that it asks for.
template <class Operator>
class WithOutput final : public Operator {
 public:
  explicit WithOutput(const Tensor& out) : out_(out) {}

  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options, at::DimnameList names) override {
    set_output_raw_strided(index, sizes, strides, options, names);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options, at::DimnameList names) override {
    if (sizes != out_.sizes()) throw std::runtime_error("returns another size than was traced");
    Operator::set_output_raw_strided(index, sizes, strides, options, names);
  }
  const Tensor& maybe_get_output(int64_t /*index*/) override { return out_; }

 private:
  const Tensor& out_;
};

template <class Operator, size_t kOperands>
class PreparedCall final : public Step {
 public:
  PreparedCall(std::array<Tensor, kOperands> operands, Tensor out)
      : operands_(std::move(operands)), out_(std::move(out)) {}

  void Run(StaticState& /*state*/) override {
    std::apply(
        [&](const auto&... operands) {
          if (!prepared_) prepared_.emplace(out_).meta(operands...);
          prepared_->impl(operands..., out_);
        },
        operands_);
  }
  void SetAddress(size_t /*argument*/, void* /*data*/) override { prepared_.reset(); }
  bool CallsOperator() const override { return true; }

 private:
  std::array<Tensor, kOperands> operands_;
  Tensor out_;
  std::optional<WithOutput<Operator>> prepared_;  // none: an operand has moved
};

/// Nothing is cast, which ATen would do when it makes the iterator.
bool HaveOneType(const std::vector<Tensor>& operands, DType result) {
  const at::ScalarType type = operands[0].scalar_type();
  return (type == at::kFloat || type == at::kComplexFloat) && ToDType(type) == result &&
         std::ranges::all_of(operands, [&](const Tensor& operand) {
           return IsPlain(operand) && operand.scalar_type() == type;
         });
}

template <class Operator, size_t kOperands>
Result<Binding> BindPrepared(const PlanStep& step, StepId index, BindContext& context) {
  if (step.args.size() != kOperands) return Binding();
  std::vector<SlotId> slots;
  std::vector<Tensor> operands;
  for (const PlanArg& arg : step.args) {
    if (arg.kind != ArgKind::kValue) return Binding();
    slots.push_back(arg.slot);
    operands.push_back(context.TensorAt(arg.slot));
  }
  const SlotId result = step.results[0];
  if (!HaveOneType(operands, context.Slot(result).layout->dtype)) return Binding();
  Tensor out = context.Place(result, index);
  context.ShareOperands(step, result, index);
  std::array<Tensor, kOperands> fixed;
  std::ranges::move(operands, fixed.begin());
  auto bound =
      std::make_unique<PreparedCall<Operator, kOperands>>(std::move(fixed), std::move(out));
  slots.push_back(result);
  context.BindArguments(*bound, slots);
  return Bound(std::move(bound));
}

using BindOperator = Result<Binding> (*)(const PlanStep& step, StepId index, BindContext& context);

constexpr std::pair<std::string_view, BindOperator> kOperators[] = {
    {"aten.mul.Tensor", BindPrepared<at::native::structured_mul_out, 2>},
    {"aten.silu.default", BindPrepared<at::native::structured_silu_out, 1>},
    {"aten.silu_backward.default", BindPrepared<at::native::structured_silu_backward_out, 2>},
    {"aten.sqrt.default", BindPrepared<at::native::structured_sqrt_out, 1>},
};

}  // namespace

Result<Binding> BindPreparedCall(const PlanStep& step, StepId index, BindContext& context) {
  const auto found = std::ranges::find(kOperators, std::string_view(step.op),
                                       &std::pair<std::string_view, BindOperator>::first);
  if (found == std::end(kOperators) || !step.kwargs.empty()) return Binding();
  return found->second(step, index, context);
}

}  // namespace strata

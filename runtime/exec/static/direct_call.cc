#include "runtime/exec/static/direct_call.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/linalg_vector_norm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>

#include "runtime/aten/fast_products.h"
#include "runtime/aten/out_variants.h"
#include "runtime/plan/fast_products.h"

namespace strata {
namespace {

using at::Tensor;

template <class... Operands>
using Function = Tensor& (*)(Tensor& out, const Operands&... operands);
using Unary = Function<Tensor>;
using Binary = Function<Tensor, Tensor>;
using Ternary = Function<Tensor, Tensor, Tensor>;

constexpr std::pair<std::string_view, Unary> kUnary[] = {
    {"aten.silu.default", at::cpu::silu_out},
    {"aten.sqrt.default", at::cpu::sqrt_out},
};

constexpr std::pair<std::string_view, Binary> kBinary[] = {
    {"aten.bmm.default", at::cpu::bmm_out},
    {"aten.mm.default", at::cpu::mm_out},
    {"aten.mul.Tensor", at::cpu::mul_out},
    {"aten.silu_backward.default", at::cpu::silu_backward_out},
    {kFastBmm, FastBmm},
    {kFastMm, FastMm},
};

constexpr std::pair<std::string_view, Ternary> kTernary[] = {
    {kFastGroupedMm, FastGroupedMm},
};

template <class... Operands>
class DirectCall final : public Step {
 public:
  DirectCall(Function<Operands...> function, Tensor out, std::array<Tensor, sizeof...(Operands)> on)
      : function_(function), out_(std::move(out)), operands_(std::move(on)) {}

  void Run(StaticState& /*state*/) override {
    std::apply([&](const auto&... operands) { function_(out_, operands...); }, operands_);
  }
  bool CallsOperator() const override { return true; }

 private:
  Function<Operands...> function_;
  Tensor out_;
  std::array<Tensor, sizeof...(Operands)> operands_;
};

/// Calls `function` on the first operands of the step. Not bound unless all are plain tensors.
template <class... Operands>
Binding Bind(Function<Operands...> function, const PlanStep& step, StepId index,
             BindContext& context) {
  std::array<Tensor, sizeof...(Operands)> operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    const PlanArg& arg = step.args[i];
    if (arg.kind != ArgKind::kValue || !IsPlain(context.TensorAt(arg.slot))) return Binding();
    operands[i] = context.TensorAt(arg.slot);
  }
  const SlotId result = step.results[0];
  Tensor out = context.Place(result, index);
  context.ShareOperands(step, result, index);
  return Bound(
      std::make_unique<DirectCall<Operands...>>(function, std::move(out), std::move(operands)));
}

/// The function of the operator in `known`; null: it is not there.
template <class Function, size_t kCount>
Function Find(const std::pair<std::string_view, Function> (&known)[kCount], const PlanStep& step) {
  const auto found = std::ranges::find(known, std::string_view(step.op),
                                       [](const auto& entry) { return entry.first; });
  return found != std::end(known) ? found->second : nullptr;
}

Tensor& EuclideanNorm(Tensor& out, const Tensor& x) {
  return at::cpu::linalg_vector_norm_out(out, x, /*ord=*/2.0);
}

bool IsEuclideanNorm(const PlanStep& step) {
  return step.op == "aten.linalg_vector_norm.default" && step.args.size() == 2 &&
         step.args[1].kind == ArgKind::kFloat && step.args[1].real == 2;
}

}  // namespace

Result<Binding> BindDirectCall(const PlanStep& step, StepId index, BindContext& context) {
  if (!step.kwargs.empty()) return Binding();
  if (IsEuclideanNorm(step)) return Bind<Tensor>(EuclideanNorm, step, index, context);
  if (const Unary unary = Find(kUnary, step); unary != nullptr && step.args.size() == 1)
    return Bind<Tensor>(unary, step, index, context);
  if (const Binary binary = Find(kBinary, step); binary != nullptr && step.args.size() == 2)
    return Bind<Tensor, Tensor>(binary, step, index, context);
  if (const Ternary ternary = Find(kTernary, step); ternary != nullptr && step.args.size() == 3)
    return Bind<Tensor, Tensor, Tensor>(ternary, step, index, context);
  return Binding();
}

}  // namespace strata

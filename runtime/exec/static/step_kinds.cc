#include "runtime/exec/static/step_kinds.h"

#include "runtime/exec/static/allocating_call.h"
#include "runtime/exec/static/body_step.h"
#include "runtime/exec/static/concatenation.h"
#include "runtime/exec/static/direct_call.h"
#include "runtime/exec/static/flex_kernel_step.h"
#include "runtime/exec/static/fused_kernel.h"
#include "runtime/exec/static/library_call.h"
#include "runtime/exec/static/matrix_product.h"
#include "runtime/exec/static/prepared_call.h"
#include "runtime/exec/static/transfer.h"

namespace strata {
namespace {

using BindKind = Result<Binding> (*)(const PlanStep& step, StepId index, BindContext& context);

/// For steps on fixed operands whose results have static layouts.
constexpr BindKind kStaticKinds[] = {
    BindTransfer,      BindFlexKernel,    BindFill,         BindCopy,       BindEmbeddingGradient,
    BindConcatenation, BindMatrixProduct, BindPreparedCall, BindDirectCall, BindOutVariant,
};

/// For the others, in this order.
constexpr BindKind kKinds[] = {BindTransfer, BindBodyStep, BindFusedKernel,
                               BindWait,     BindInPlace,  BindAllocatingCall};

bool IsStatic(const PlanStep& step, BindContext& context) {
  bool is_fixed = !step.kernel.valid() && !step.runs_bodies && !step.results.empty();
  step.ForEachOperand([&](SlotId slot) { is_fixed = is_fixed && context.IsFixed(slot); });
  return is_fixed && context.plan().options.static_memory && !step.is_view && !step.mutates &&
         context.HaveLayouts(step);
}

}  // namespace

Result<Binding> BindToKind(const PlanStep& step, StepId index, BindContext& context) {
  if (IsStatic(step, context)) {
    for (const BindKind bind : kStaticKinds) {
      STRATA_TRY(Binding binding, bind(step, index, context));
      if (binding.is_bound) return binding;
    }
  }
  for (const BindKind bind : kKinds) {
    STRATA_TRY(Binding binding, bind(step, index, context));
    if (binding.is_bound) return binding;
  }
  return Error(ErrorCode::kInternal, "no kind of step takes it");
}

}  // namespace strata

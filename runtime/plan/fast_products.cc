#include "runtime/plan/fast_products.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {
namespace {

/// Multiplications of a product that takes MKL as long as oneDNN with its overhead, rounded up.
constexpr int64_t kLeastMultiplications = int64_t{1} << 21;

/// The operator that computes the same; none: there is none.
std::string_view FastOpOf(const PlanStep& step) {
  const size_t num_args = step.args.size();
  if (step.op == "aten.mm.default" && num_args == 2) return kFastMm;
  if (step.op == "aten.bmm.default" && num_args == 2) return kFastBmm;
  return step.op == "aten._grouped_mm.default" && num_args == 3 ? kFastGroupedMm : "";
}

/// Of the layouts of its operands; 0: they are not known, or the operator multiplies otherwise.
int64_t Multiplications(const Plan& plan, const PlanStep& step) {
  if (FastOpOf(step).empty() || !step.kwargs.empty() || step.results.size() != 1) return 0;
  const auto layout_of = [&](SlotId slot) {
    return slot.valid() ? plan.slots[slot].layout : std::nullopt;
  };
  const auto left = layout_of(step.args[0].slot), right = layout_of(step.args[1].slot);
  if (!left || !right || right->sizes.empty()) return 0;
  if (step.args.size() == 3 && left->sizes.size() != 2) return 0;
  return left->num_elements() * right->sizes.back();
}

}  // namespace

bool IsFastProduct(std::string_view op) {
  return op == kFastMm || op == kFastBmm || op == kFastGroupedMm;
}

void UseFastProduct(const Plan& plan, PlanStep& step) {
  if (Multiplications(plan, step) >= kLeastMultiplications) step.op = FastOpOf(step);
}

}  // namespace strata

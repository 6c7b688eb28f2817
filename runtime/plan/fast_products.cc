#include "runtime/plan/fast_products.h"

#include <cstdint>
#include <optional>

namespace strata {
namespace {

/// Multiplications of a product that takes MKL as long as oneDNN with its overhead, rounded up.
constexpr int64_t kLeastMultiplications = int64_t{1} << 21;

/// Of the layouts of its operands; 0: they are not known.
int64_t Multiplications(const Plan& plan, const PlanStep& step) {
  if (step.args.size() != 2 || step.results.size() != 1) return 0;
  const auto layout_of = [&](SlotId slot) {
    return slot.valid() ? plan.slots[slot].layout : std::nullopt;
  };
  const auto left = layout_of(step.args[0].slot), right = layout_of(step.args[1].slot);
  if (!left || !right || right->sizes.empty()) return 0;
  return left->num_elements() * right->sizes.back();
}

}  // namespace

void UseFastProduct(const Plan& plan, PlanStep& step) {
  if (Multiplications(plan, step) < kLeastMultiplications) return;
  if (step.op == "aten.mm.default") step.op = kFastMm;
  if (step.op == "aten.bmm.default") step.op = kFastBmm;
}

}  // namespace strata

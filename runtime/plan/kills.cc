#include "runtime/plan/kills.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/in_flight.h"

namespace strata {

void AddKills(Plan& plan) {
  IdVector<SlotId, bool> lives_on(plan.slots.size(), false);
  const auto mark = [&](SlotId slot) {
    if (!slot.valid() || lives_on[slot]) return false;
    lives_on[slot] = true;
    return true;
  };
  for (const Plan::Input& input : plan.inputs)
    mark(input.slot);
  for (const Plan::Constant& constant : plan.constants)
    mark(constant.slot);
  for (const SlotId output : plan.outputs)
    mark(output);
  const InFlight in_flight = FindInFlight(plan);
  for (size_t i = plan.steps.size(); i-- > 0;) {
    const StepId id{static_cast<int32_t>(i)};
    PlanStep& step = plan.steps[id];
    const auto kill = [&](SlotId slot) {
      if (mark(slot)) step.kills.push_back(slot);
    };
    step.ForEachOperand(kill);
    // A plan that is not static launches a collective and waits for it at once.
    if (plan.options.is_static() && !in_flight.held.empty())
      std::ranges::for_each(in_flight.held[id], kill);
    std::ranges::sort(step.kills);
  }
}

}  // namespace strata

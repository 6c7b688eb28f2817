#include "runtime/plan/kills.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/in_flight.h"

namespace strata {

void AddKills(Plan& plan) {
  std::vector<bool> lives_on(plan.slots.size(), false);
  const auto mark = [&](int32_t slot) {
    if (slot < 0 || lives_on[static_cast<size_t>(slot)]) return false;
    lives_on[static_cast<size_t>(slot)] = true;
    return true;
  };
  for (const Plan::Input& input : plan.inputs)
    mark(input.slot);
  for (const Plan::Constant& constant : plan.constants)
    mark(constant.slot);
  for (const int32_t output : plan.outputs)
    mark(output);
  const InFlight in_flight = FindInFlight(plan);
  for (size_t i = plan.steps.size(); i-- > 0;) {
    PlanStep& step = plan.steps[i];
    const auto kill = [&](int32_t slot) {
      if (mark(slot)) step.kills.push_back(slot);
    };
    step.ForEachOperand(kill);
    // A plan that is not static launches a collective and waits for it at once.
    if (plan.options.is_static() && !in_flight.held.empty())
      std::ranges::for_each(in_flight.held[i], kill);
    std::ranges::sort(step.kills);
  }
}

}  // namespace strata

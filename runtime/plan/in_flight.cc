#include "runtime/plan/in_flight.h"

#include <cstddef>
#include <map>

#include "ir/ops.h"

namespace strata {

bool IsWait(std::string_view op) {
  return op == "_c10d_functional.wait_tensor.default";
}

InFlight FindInFlight(const Plan& plan) {
  InFlight found;
  std::map<int32_t, size_t> launched;  // owner of a result's storage -> the step
  const auto owner_of = [&](int32_t slot) { return plan.slots[static_cast<size_t>(slot)].storage; };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (TraitsOf(step.op).collective) {
      if (found.held.empty()) found.held.resize(plan.steps.size());
      // Results of several tensors, or of none, are not followed.
      const bool is_followed = step.results.size() == 1 && step.results[0] >= 0;
      launched.emplace(is_followed ? owner_of(step.results[0]) : -1 - static_cast<int32_t>(i), i);
    } else if (IsWait(step.op) && !step.args.empty() && step.args[0].slot >= 0) {
      const auto launch = launched.find(owner_of(step.args[0].slot));
      if (launch == launched.end()) continue;
      plan.steps[launch->second].ForEachOperand(
          [&](int32_t slot) { found.held[i].push_back(slot); });
      launched.erase(launch);
    }
  }
  found.is_overlapped = !found.held.empty() && launched.empty();
  return found;
}

}  // namespace strata

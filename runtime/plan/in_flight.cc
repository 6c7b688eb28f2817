#include "runtime/plan/in_flight.h"

#include <cstddef>
#include <map>
#include <string_view>
#include <unordered_map>

#include "ir/ops.h"

namespace strata {

bool IsWait(std::string_view op) {
  return op == "_c10d_functional.wait_tensor.default";
}

InFlight FindInFlight(const Plan& plan) {
  InFlight found;
  std::map<SlotId, StepId> launched;  // by owner of the result's storage
  bool are_all_followed = true;       // not results of several tensors, or of none
  const auto owner_of = [&](SlotId slot) { return plan.slots[slot].storage; };
  std::unordered_map<std::string_view, bool> known;  // thousands of steps call a few operators
  const auto is_collective = [&](std::string_view op) {
    const auto [entry, is_new] = known.try_emplace(op);
    if (is_new) entry->second = TraitsOf(op).collective;
    return entry->second;
  };
  for (const StepId id : IdsOf(plan.steps)) {
    const PlanStep& step = plan.steps[id];
    if (is_collective(step.op)) {
      if (found.held.empty()) found.held.resize(plan.steps.size());
      const bool is_followed = step.results.size() == 1 && step.results[0].valid();
      are_all_followed = are_all_followed && is_followed;
      if (is_followed) launched.emplace(owner_of(step.results[0]), id);
    } else if (IsWait(step.op) && !step.args.empty() && step.args[0].slot.valid()) {
      const auto launch = launched.find(owner_of(step.args[0].slot));
      if (launch == launched.end()) continue;
      plan.steps[launch->second].ForEachOperand(
          [&](SlotId slot) { found.held[id].push_back(slot); });
      launched.erase(launch);
    }
  }
  found.is_overlapped = !found.held.empty() && are_all_followed && launched.empty();
  return found;
}

}  // namespace strata

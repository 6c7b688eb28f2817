#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"

namespace strata {

/// Whether the operator waits for a collective.
bool IsWait(std::string_view op);

/// What collectives read while other steps run: from the launch, which takes the operands, to the
/// wait for its result.
struct InFlight {
  /// By step: slots that a launch reads until this step, a wait, is done. Empty: no launches.
  IdVector<StepId, std::vector<SlotId>> held;
  /// The plan has launches, and each is waited for.
  bool is_overlapped = false;
};
InFlight FindInFlight(const Plan& plan);

}  // namespace strata

#pragma once
#include <vector>

#include "runtime/plan/plan.h"

namespace strata {

/// Neighbouring steps of a plan that a device graph holds, or that run between two of them.
struct PlanPiece {
  StepId first, end;  ///< steps [first, end)
  bool is_captured = false;
  std::vector<SlotId> inputs;   ///< what it reads and does not make, in the order of reading
  std::vector<SlotId> outputs;  ///< what it makes and later steps read, or the plan returns
};

/// The pieces of a plan with Capture::kPieces, in order: all of its steps. Errors (kInternal): a
/// step in a device graph runs on a side stream.
Result<std::vector<PlanPiece>> PiecesOf(const Plan& plan);

}  // namespace strata

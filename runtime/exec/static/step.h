#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan/plan.h"

namespace strata {

struct StaticState;

/// What a static program executes for one step of its plan, bound to the program's tensors. A kind
/// of step is a class with a function that binds it; step_kinds.cc lists these functions.
class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;

  /// Executes the step. What an operator throws passes through.
  virtual void Run(StaticState& state) = 0;

  /// Sets the address of an argument that BindContext::BindArguments registered; null: it has no
  /// memory until the next call.
  virtual void SetAddress(size_t /*argument*/, void* /*data*/) {}
  /// Whether it calls an operator, which may allocate a workspace.
  virtual bool CallsOperator() const { return false; }
  /// Whether it allocates this result, of data-dependent size, in the dynamic arena if there is
  /// room.
  virtual bool UsesArena(SlotId /*slot*/) const { return false; }
};

/// A step of the plan in a static program.
struct StaticStep {
  std::unique_ptr<Step> work;  ///< null: done at bind time (a folded view, a hoisted constant)
  bool has_dynamic_results = false;  ///< their tensors change from run to run
  bool lets_go = false;              ///< `releases` or `drops` are not empty
  std::vector<SlotId> takes;         ///< slots whose storage is allocated before the step
  std::vector<SlotId> releases;      ///< slots whose adopted storage is released after the step
  std::vector<SlotId> drops;         ///< dynamic slots that die with the step
};

}  // namespace strata

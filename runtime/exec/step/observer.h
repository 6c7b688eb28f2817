#pragma once
#include <span>

#include <ATen/core/Tensor.h>

#include "runtime/exec/step/step_times.h"
#include "runtime/plan/plan.h"

namespace strata {

/// Watches a run step by step: to time it, to read values, to compare them.
class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  /// `results` as the operator returned them, a returned list as its elements; undefined for a
  /// result that is not a tensor. Called before any operand is released.
  virtual void OnStep(const PlanStep& step, std::span<const at::Tensor> results) = 0;
  /// Whether `OnStep` is also called for steps that a run skips: folded views, hoisted constants.
  virtual bool WantsAllSteps() const { return true; }
  /// Whether `OnStep` reads elements of the results: collectives then end where they are launched,
  /// else they run until their waits, as without an observer.
  virtual bool ReadsResults() const { return true; }
  /// Where to write when each step ended; null: nowhere. A static plan that has it calls `OnStep`
  /// only for steps whose results have data-dependent sizes.
  virtual StepTimes* times() { return nullptr; }
};

}  // namespace strata

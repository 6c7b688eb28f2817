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
  /// `results` as the operator returned them, a returned list as its elements; undefined for what
  /// is no tensor. Before anything is killed.
  virtual void OnStep(const PlanStep& step, std::span<const at::Tensor> results) = 0;
  /// Whether it is told of steps that a run does not do, too: folded views, hoisted constants.
  virtual bool WantsAllSteps() const { return true; }
  /// Where to write when each step ended; null: nowhere. A static plan that has it calls `OnStep`
  /// only for steps whose results have sizes that nobody knew before.
  virtual StepTimes* times() { return nullptr; }
};

}  // namespace strata

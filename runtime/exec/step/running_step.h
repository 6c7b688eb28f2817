#pragma once
#include <functional>
#include <string>

#include "runtime/plan/plan.h"

namespace strata {

/// During its lifetime, the calling thread executes a plan: for messages of operators that know
/// nothing of plans. Scopes nest.
class RunningPlan {
 public:
  /// `step` gives the step that is executed. REQUIRES: the plan outlives this.
  RunningPlan(const Plan& plan, std::function<StepId()> step);
  RunningPlan(const RunningPlan&) = delete;
  RunningPlan& operator=(const RunningPlan&) = delete;
  ~RunningPlan();

  /// The node that the calling thread executes: `all_reduce_3 of graph step, layers.0.attention
  /// (runtime/models/llama3.cc:79)`; empty outside of plans.
  static std::string CurrentNode();

 private:
  const Plan& plan_;
  std::function<StepId()> step_;
  RunningPlan* outer_;
};

}  // namespace strata

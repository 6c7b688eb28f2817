#pragma once
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/exec/static/bind_context.h"

namespace strata {

/// Makes the program of a plan: tensors over memory that is assigned for all runs, folded views,
/// hoisted constants, and a bound step for everything else (step_kinds.h).
class StaticBinder {
 public:
  /// All outlive the binder; plan and bodies outlive the program, too. `kernels` may be null for a
  /// plan without kernels.
  StaticBinder(const Plan& plan, const Constants& constants, const KernelLibrary* kernels,
               const BodyPrograms& bodies, const ScratchMemory& scratch)
      : plan_(plan),
        constants_(constants),
        scratch_(scratch),
        state_(std::make_unique<StaticState>(plan)),
        context_(plan, kernels, bodies, *state_) {}

  /// REQUIRES: called once. Errors, with the step: what cannot be executed.
  Result<std::unique_ptr<StaticProgram>> Run();

 private:
  void BindInputs();
  Status BindConstants();
  Status BindOne(StepId index);
  /// Runs a step at bind time, on fixed tensors.
  Result<torch::jit::Stack> CallNow(const PlanStep& step, std::string_view name);
  Status FoldView(const PlanStep& step);
  /// Its operands are constants, and no step writes to them or to its results.
  bool CanHoist(const PlanStep& step);
  Status Hoist(const PlanStep& step);
  void PlaceMemory();
  /// Counts workspaces, and results that an allocator provides during a run.
  void CountTransient();
  void AddTransient(const SizeForm& bytes, SlotId slot, StepId first, StepId last);
  void PlanReleases();

  const Plan& plan_;
  const Constants& constants_;
  const ScratchMemory& scratch_;
  std::unique_ptr<StaticState> state_;
  BindContext context_;
  std::set<SlotId> is_constant_;  // owners
};

}  // namespace strata

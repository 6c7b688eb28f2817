#pragma once
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "runtime/codegen/schedule.h"
#include "runtime/exec/static/static_state.h"
#include "runtime/plan/memory/buffer_assignment.h"

namespace strata {

/// Makes the program of a plan: tensors over memory that is placed for all runs, and for each step
/// what is called on them. static_binder.cc has the order of work, views, constants, calls as they
/// are and memory; out_steps.cc the steps that write to memory of ours.
class StaticBinder {
 public:
  /// All outlive the binder; the plan outlives the program, too. `kernels` may be null for a plan
  /// without kernels.
  StaticBinder(const Plan& plan, const Constants& constants, const KernelLibrary* kernels,
               const ScratchMemory& scratch)
      : plan_(plan),
        constants_(constants),
        kernels_(kernels),
        scratch_(scratch),
        state_(std::make_unique<StaticProgram::State>(plan)),
        places_(plan) {}

  /// To be called once. Errors, with the step: what cannot be executed.
  Result<std::unique_ptr<StaticProgram>> Run();

 private:
  const PlanSlot& Slot(int32_t slot) const { return plan_.slots[static_cast<size_t>(slot)]; }
  int32_t OwnerOf(int32_t slot) const { return Slot(slot).storage; }
  StaticStorage& StorageOf(int32_t slot) { return state_->StorageOf(slot); }
  bool IsFixed(int32_t slot) {
    return Slot(slot).layout && state_->TensorAt(slot).defined() &&
           !state_->is_dynamic[static_cast<size_t>(slot)];
  }

  void BindInputs();
  Status BindConstants();
  Status BindOne(int32_t index);
  bool HaveLayouts(const PlanStep& step) const;
  /// Fills arguments that are there for all runs; the others stay in `bound.dynamic_*`.
  void FillStack(const BoundStep& filled, StaticStep& bound);
  /// Runs a step now, on the tensors that are there.
  Result<torch::jit::Stack> CallNow(const PlanStep& step);
  Status FoldView(const PlanStep& step);
  /// Depends on nothing but constants, and nobody writes to what it makes.
  bool CanHoist(const PlanStep& step);
  Status Hoist(const PlanStep& step);
  /// A call of the operator as it is.
  Status BindCall(const PlanStep& step, StaticStep& bound, bool is_fixed);
  /// What it is, the run tells. A view of fixed memory that is not folded is one, too.
  void MakeDynamic(int32_t slot);
  /// Its size is read from data, and it does not outlive the run.
  bool CanUseDynamicArena(int32_t slot) const;
  int32_t OperandWrittenAs(const PlanStep& step, int32_t result);

  /// Gives a result a tensor over memory that is placed later.
  void Place(int32_t slot, int32_t step);
  /// Lets the result live where an operand lies that dies with this step.
  void Share(int32_t slot, int32_t step, const std::function<bool(int32_t operand)>& may_share);
  void PlaceMemory();
  /// What operators return, while it lives.
  void CountTransient();
  void PlanReleases();

  // Steps that write to memory of ours. False: not this one.
  Result<bool> BindInto(const PlanStep& step, StaticStep& bound);
  Result<bool> BindFillOrCopy(const PlanStep& step, StaticStep& bound);
  /// The gradient of an embedding has no out-variant. It is a sum over tokens in their order, as
  /// index_add_ makes it into rows of zeros.
  Result<bool> BindEmbeddingBackward(const PlanStep& step, StaticStep& bound);
  /// A stack along the first dimension: one operand's memory after the other's.
  bool BindJoin(const PlanStep& step, StaticStep& bound);
  Status BindKernel(const PlanStep& step, StaticStep& bound);
  Status BindDynamicKernel(const PlanStep& step, const Schedule& schedule, StaticStep& bound);
  void AddArguments(StaticStep& bound, const std::vector<int32_t>& slots);

  const Plan& plan_;
  const Constants& constants_;
  const KernelLibrary* kernels_;
  const ScratchMemory& scratch_;
  std::unique_ptr<StaticProgram::State> state_;
  BufferAssignment places_;
  std::set<int32_t> is_constant_;  // owners
};

}  // namespace strata

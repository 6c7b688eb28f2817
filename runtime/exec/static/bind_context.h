#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/codegen/kernel_library.h"
#include "runtime/exec/static/static_state.h"
#include "runtime/exec/static/step.h"
#include "runtime/exec/step/body_call.h"
#include "runtime/plan/memory/buffer_assignment.h"

namespace strata {

/// What binding a step to one kind gave. Empty: the step is of another kind.
struct Binding {
  bool is_bound = false;
  std::unique_ptr<Step> work;  ///< null: nothing is left to do in a run
};
inline Binding Bound(std::unique_ptr<Step> work) {
  return {.is_bound = true, .work = std::move(work)};
}

/// What a kind of step needs to bind itself: the tensors of values, and memory for results.
class BindContext {
 public:
  /// `kernels` may be null for a plan without kernels. All outlive the context.
  BindContext(const Plan& plan, const KernelLibrary* kernels, const BodyPrograms& bodies,
              StaticState& state)
      : plan_(plan), kernels_(kernels), bodies_(bodies), state_(state), assignment_(plan) {}

  const Plan& plan() const { return plan_; }
  const KernelLibrary* kernels() const { return kernels_; }
  const BodyPrograms& bodies() const { return bodies_; }
  StaticState& state() { return state_; }
  BufferAssignment& assignment() { return assignment_; }

  const PlanSlot& Slot(SlotId slot) const { return plan_.slots[slot]; }
  SlotId OwnerOf(SlotId slot) const { return Slot(slot).storage; }
  const at::Tensor& TensorAt(SlotId slot) { return state_.TensorAt(slot); }
  StaticStorage& StorageOf(SlotId slot) { return state_.StorageOf(slot); }
  /// The slot has one tensor object for all runs.
  bool IsFixed(SlotId slot);
  /// All results have static layouts and storages of their own.
  bool HaveLayouts(const PlanStep& step) const;
  /// The operand that an in-place operator writes as this result, with the same layout; invalid:
  /// none.
  SlotId OperandWrittenAs(const PlanStep& step, SlotId result) const;

  /// Whether a result has memory of its own in each run: PlanOptions::separate_outputs.
  bool IsSeparate(SlotId slot) const;
  /// Gives a result of step `index` a tensor over memory that is assigned later.
  const at::Tensor& Place(SlotId slot, StepId index);
  /// The same in the memory of a donated input; null: none has room.
  const at::Tensor* PlaceInDonated(SlotId slot, StepId index);
  /// The same in memory of the host, for an offloaded value that is not an output.
  const at::Tensor& PlaceOnHost(SlotId slot, StepId index);
  /// Lays out the memory of the host, and returns its bytes.
  int64_t AssignHost();
  /// Allows the result to use the memory of an operand whose lifetime ends with step `index`.
  void Share(SlotId slot, StepId index, const std::function<bool(SlotId operand)>& may_share);
  /// Shares the operands of an operator that reads no element, or row, after it has written it.
  void ShareOperands(const PlanStep& step, SlotId slot, StepId index);
  /// The tensor of this slot changes from run to run.
  void MakeDynamic(SlotId slot);
  /// Its size is data-dependent, and it does not outlive the run.
  bool CanUseArena(SlotId slot) const;
  /// A further tensor over the storage of `slot`, which moves with it.
  at::Tensor Alias(SlotId slot, const PlanLayout& layout);
  /// Registers the tensors of these slots as arguments 0, 1, … of `step`: SetAddress follows them.
  void BindArguments(Step& step, const std::vector<SlotId>& slots);

 private:
  const Plan& plan_;
  const KernelLibrary* kernels_;
  const BodyPrograms& bodies_;
  StaticState& state_;
  BufferAssignment assignment_;
  std::vector<MemoryRequest> host_requests_;
  std::vector<SlotId> host_owners_;  // of each request
};

}  // namespace strata

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
  BindContext(const Plan& plan, const KernelLibrary* kernels, StaticState& state)
      : plan_(plan), kernels_(kernels), state_(state), assignment_(plan) {}

  const Plan& plan() const { return plan_; }
  const KernelLibrary* kernels() const { return kernels_; }
  StaticState& state() { return state_; }
  BufferAssignment& assignment() { return assignment_; }

  const PlanSlot& Slot(int32_t slot) const { return plan_.slots[static_cast<size_t>(slot)]; }
  int32_t OwnerOf(int32_t slot) const { return Slot(slot).storage; }
  const at::Tensor& TensorAt(int32_t slot) { return state_.TensorAt(slot); }
  StaticStorage& StorageOf(int32_t slot) { return state_.StorageOf(slot); }
  /// The slot has one tensor object for all runs.
  bool IsFixed(int32_t slot);
  /// All results have static layouts and storages of their own.
  bool HaveLayouts(const PlanStep& step) const;
  /// The operand that an in-place operator writes as this result, with the same layout; -1: none.
  int32_t OperandWrittenAs(const PlanStep& step, int32_t result) const;

  /// Gives a result of step `index` a tensor over memory that is assigned later.
  const at::Tensor& Place(int32_t slot, int32_t index);
  /// The same in memory of the host, for an offloaded value that is not an output.
  const at::Tensor& PlaceOnHost(int32_t slot, int32_t index);
  /// Lays out the memory of the host, and returns its bytes.
  int64_t AssignHost();
  /// Allows the result to use the memory of an operand whose lifetime ends with step `index`.
  void Share(int32_t slot, int32_t index, const std::function<bool(int32_t operand)>& may_share);
  /// Shares the operands of an operator that reads no element, or row, after it has written it.
  void ShareOperands(const PlanStep& step, int32_t slot, int32_t index);
  /// The tensor of this slot changes from run to run.
  void MakeDynamic(int32_t slot);
  /// Its size is data-dependent, and it does not outlive the run.
  bool CanUseArena(int32_t slot) const;
  /// A further tensor over the storage of `slot`, which moves with it.
  at::Tensor Alias(int32_t slot, const PlanLayout& layout);
  /// Registers the tensors of these slots as arguments 0, 1, … of `step`: SetAddress follows them.
  void BindArguments(Step& step, const std::vector<int32_t>& slots);

 private:
  const Plan& plan_;
  const KernelLibrary* kernels_;
  StaticState& state_;
  BufferAssignment assignment_;
  std::vector<MemoryRequest> host_requests_;
  std::vector<int32_t> host_owners_;  // of each request
};

}  // namespace strata

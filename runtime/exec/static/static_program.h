#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include "base/result.h"
#include "runtime/codegen/kernel_library.h"
#include "runtime/exec/step/step_binder.h"
#include "runtime/plan/memory/planned_memory.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

class ExecutionObserver;

/// Memory that belongs to another program, which does not need it between its runs.
struct ScratchMemory {
  std::shared_ptr<void> owner;
  void* address = nullptr;  ///< aligned as MemoryPlan::kAlignment
  int64_t bytes = 0;
};

/// Memory that results share; null: none.
struct MemoryBlock {
  std::shared_ptr<c10::DataPtr> memory;
  int64_t bytes = 0;
};

/// A plan whose steps are bound to tensors once, for all runs: every value has a tensor object that
/// stays, views of it are made when the plan is bound, and argument stacks hold both. A run calls
/// operators, and nothing else.
///
/// Memory of a value is one of
///   - its place in the block that the memory plan lays out; the operator's out-variant writes
///   there;
///   - what the operator returns, where it has no out-variant: the tensor object takes over that
///     storage until the value dies;
///   - the caller's, for inputs;
///   - for outputs, a place in the block, too. While somebody holds one, the next run takes a new
///   block.
class StaticProgram {
 public:
  /// Takes no memory for results before it runs. Results go to `scratch` where that is large enough
  /// and none of them is an output that others keep. REQUIRES: plan outlives the program; kernels
  /// are those of the plan, null if it has none.
  static Result<std::unique_ptr<StaticProgram>> Bind(const Plan& plan, const Constants& constants,
                                                     const KernelLibrary* kernels,
                                                     const ScratchMemory& scratch);
  ~StaticProgram();

  /// As Executor::Run. Nothing of the inputs is referred to after it.
  /// What an operator throws passes through; `failed_step` tells which it was.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs,
                                      ExecutionObserver* observer);
  size_t failed_step() const;
  void Reset();  ///< lets go of what a failed run left

  /// What a run needs beyond inputs.
  PlannedMemory planned_memory() const;
  ScratchMemory scratch();
  /// Outputs lie in the block: a run while somebody holds some of the last one takes another.
  bool lends_outputs() const;

  /// Lets go of the block; returns it unless somebody holds an output of the last run, which lies
  /// there. The next run takes a new one, if none is given.
  MemoryBlock TakeBlock();
  /// Uses the block if it is large enough. REQUIRES: there is none, as after `TakeBlock`.
  void GiveBlock(MemoryBlock block);
  /// From now on results go to `scratch`, as for `Bind`; where they cannot, to a block of its own.
  void Borrow(const ScratchMemory& scratch);

 private:
  struct State;
  explicit StaticProgram(std::unique_ptr<State> state);
  friend class StaticBinder;
  std::unique_ptr<State> state_;
};

}  // namespace strata

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
#include "runtime/exec/step/body_call.h"
#include "runtime/exec/step/step_binder.h"
#include "runtime/plan/memory/planned_memory.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

class ExecutionObserver;
struct StaticState;

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

/// A plan whose steps are bound to tensors once, for all runs. Every value has one tensor object,
/// views of it are made at bind time, and argument stacks hold both. A run calls operators and
/// kernels, and nothing else.
///
/// The memory of a value is one of
///   - its buffer in the block, to which the operator's out-variant writes;
///   - the storage that the operator returns, if it has no out-variant: the tensor object adopts it
///     until the value's last use;
///   - the caller's memory, for inputs.
/// Outputs have buffers in the block, too. While the caller holds one, the next run takes a new
/// block.
class StaticProgram {
 public:
  /// Allocates no memory for results before the first run. Results use `scratch` if it is large
  /// enough and no output is larger than a number. REQUIRES: the plan outlives the program;
  /// `kernels` are those of the plan, null if it has none.
  static Result<std::unique_ptr<StaticProgram>> Bind(const Plan& plan, const Constants& constants,
                                                     const KernelLibrary* kernels,
                                                     const BodyPrograms& bodies,
                                                     const ScratchMemory& scratch);
  ~StaticProgram();

  /// As Executor::Run. The program does not refer to the inputs afterwards. What an operator throws
  /// passes through; `failed_step` is then its step.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs,
                                      ExecutionObserver* observer);
  StepId failed_step() const;
  void Reset();  ///< releases what a failed run left

  /// The memory that a run needs beyond inputs.
  PlannedMemory planned_memory() const;
  ScratchMemory scratch();
  /// Outputs are in the block: a run takes another block while the caller holds one of them.
  bool lends_outputs() const;

  /// Releases the block, and returns it unless the caller holds an output of the last run. The next
  /// run allocates a new one, unless it is given one.
  MemoryBlock TakeBlock();
  /// Uses the block if it is large enough. REQUIRES: there is none, as after `TakeBlock`.
  void GiveBlock(MemoryBlock block);
  /// From now on results use `scratch` as for `Bind`, or else a block of the program.
  void Borrow(const ScratchMemory& scratch);

 private:
  explicit StaticProgram(std::unique_ptr<StaticState> state);
  friend class StaticBinder;
  std::unique_ptr<StaticState> state_;
};

}  // namespace strata

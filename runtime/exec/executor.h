#pragma once
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "runtime/exec/boxed/boxed_program.h"
#include "runtime/exec/static/static_program.h"
#include "runtime/exec/step/body_call.h"
#include "runtime/exec/step/observer.h"
#include "runtime/exec/step/step_times.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// Makes Strata's operators, which plans call, known to ATen, once.
void RegisterPlanOperators();

/// The bodies of a plan, bound. REQUIRES: the plan outlives them. Errors: as Executor::Bind.
Result<BodyPrograms> BindBodies(const Plan& plan, const Constants& constants);

/// A plan bound to ATen's operators: each step has its argument stack ready but for the tensors
/// that change from run to run. Runs without autograd, on the calling thread.
class Executor {
 public:
  /// Errors: an operator that this LibTorch does not have, arguments that do not fit its schema, a
  /// missing constant.
  /// With a device the plan runs there (boxed_program.h); `options` that lay out memory of the CPU
  /// mean nothing. REQUIRES: the device outlives the executor.
  static Result<Executor> Bind(Plan plan, const Constants& constants,
                               const ScratchMemory& scratch = {}, Device* device = nullptr);

  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  ~Executor();

  /// The outputs, undefined for those that are None. Inputs are read, and written only by in-place
  /// operations of the graph; views of them may be among the outputs.
  ///
  /// Errors: inputs of another number, dtype, size or stride than the graph's; whatever an operator
  /// throws, with the node, its operands' types, module path and source line.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs,
                                      ExecutionObserver* observer = nullptr);

  const Plan& plan() const;
  /// The next run writes its outputs over those of the last one: a replayed device graph.
  bool reuses_outputs() const;
  /// Which nodes of the captured device graph are of which module.
  std::vector<KernelAnnotation> annotations() const;
  /// Whether outputs are in memory that the next run reuses: it overwrites them, or allocates new
  /// memory while the caller holds one.
  bool lends_outputs() const;
  /// Memory that a run needs beyond its inputs; zero on a device, where it is not known.
  PlannedMemory planned_memory() const;
  /// Memory for a plan that runs between two runs of this one, and keeps nothing there.
  ScratchMemory scratch();
  /// Of static plans, as StaticProgram's; other plans have no block and borrow nothing.
  MemoryBlock TakeBlock();
  void GiveBlock(MemoryBlock block);
  void Borrow(const ScratchMemory& scratch);

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata

#pragma once
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "runtime/plan/device.h"
#include "runtime/plan/plan.h"
#include "runtime/torch/boxed_program.h"
#include "runtime/torch/static_program.h"
#include "runtime/torch/step_times.h"
#include "runtime/torch/tracer.h"

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
  /// throws, told with the node, its operands' types, module path and source line.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs,
                                      ExecutionObserver* observer = nullptr);

  const Plan& plan() const;
  /// The next run writes its outputs over those of the last one: a replayed device graph.
  bool reuses_outputs() const;
  /// Which nodes of the captured device graph are of which module.
  std::vector<KernelAnnotation> annotations() const;
  /// Outputs lie in memory that the next run wants: it overwrites them, or takes as much anew while
  /// somebody holds one.
  bool lends_outputs() const;
  /// What a run needs beyond inputs; nothing is told of a device.
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

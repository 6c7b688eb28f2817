#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "runtime/exec/boxed/program_capture.h"
#include "runtime/exec/step/body_call.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/memory/planned_memory.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

class ExecutionObserver;

/// A plan whose steps call operators one after the other, with what they return as the next ones'
/// arguments. Without a device on the calling thread, as they come.
///
/// On a device, memory is what the operators' own allocator gives. Steps go to the streams that
/// they are annotated with, ordered by the fewest events (runtime/plan/device/schedule.h); kernels
/// are the device's. Where an operator returns another layout than was traced, the result is copied
/// into the traced one. A plan that can be captured is, in its second run, and replayed from then
/// on (runtime/plan/device/graph_replay.h): as a whole, or in pieces with steps between them.
class BoxedProgram {
 public:
  /// REQUIRES: plan, device, which may be null, and bodies outlive the program. Kernels need a
  /// device. `bodies` may be null for a plan without bodies.
  static Result<std::unique_ptr<BoxedProgram>> Bind(const Plan& plan, const Constants& constants,
                                                    Device* device,
                                                    const BodyPrograms* bodies = nullptr);
  ~BoxedProgram();

  /// As Executor::Run. Exceptions of operators pass through; `failed_step` names the step. With an
  /// observer, no device graph is replayed.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs,
                                      ExecutionObserver* observer);
  StepId failed_step() const;
  void Reset();  ///< releases the values that a failed run left

  /// On the CPU: what operators allocate. On a device: nothing is known.
  PlannedMemory planned_memory() const;
  /// The next run writes its outputs over those of this one.
  bool reuses_outputs() const;
  /// Of what was captured; empty before.
  std::vector<KernelAnnotation> annotations() const;

 private:
  struct State;
  explicit BoxedProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata

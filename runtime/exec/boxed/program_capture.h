#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/device/graph_replay.h"
#include "runtime/plan/plan.h"

namespace strata {

/// The nodes that steps of one module left in a device graph, in the order of their capture.
struct KernelAnnotation {
  std::string module;
  int64_t first = 0, last = 0;  ///< nodes [first, last)
  int64_t piece = 0;            ///< of a program that is captured in pieces: which of them
  friend bool operator==(const KernelAnnotation&, const KernelAnnotation&) = default;
};

/// An input of a program, or of a piece of one.
struct CaptureInput {
  std::string name;
  bool is_static = false;   ///< the same memory in every run
  bool is_written = false;  ///< a run writes to it
};
std::vector<CaptureInput> CaptureInputsOf(const Plan& plan);

/// Captures the second run of a program, or of a piece of one, as a device graph and replays it
/// from then on: the tensors around a CapturedRun (runtime/plan/device/graph_replay.h).
class ProgramCapture {
 public:
  /// Runs the steps.
  using Steps = std::function<std::vector<at::Tensor>(std::span<const at::Tensor> inputs)>;

  /// `graph`: a name for messages. REQUIRES: the device outlives the capture.
  ProgramCapture(std::string graph, std::vector<CaptureInput> inputs, Device& device, Steps steps);

  /// Exceptions of the steps pass through.
  Result<std::vector<at::Tensor>> Run(std::span<const at::Tensor> inputs);
  /// Called by the steps: while they are captured, annotates the nodes that `step` left.
  void AfterStep(const PlanStep& step);

  bool is_captured() const { return run_.state() == CapturedRun::State::kCaptured; }
  /// Empty before the graph is captured.
  const std::vector<KernelAnnotation>& annotations() const { return annotations_; }

 private:
  Result<std::vector<DeviceBuffer>> Issue();
  Status CopyBack(std::span<const at::Tensor> inputs);

  std::string graph_;
  std::vector<CaptureInput> described_;  // inputs
  Device& device_;
  Steps steps_;
  CapturedRun run_;
  std::span<const at::Tensor> inputs_;  // of the current run
  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> graph_inputs_, graph_outputs_;  // the graph's memory
  bool is_capturing_ = false;
  std::exception_ptr thrown_;  // by an operator, until the capture has ended
  std::vector<KernelAnnotation> annotations_;
};

}  // namespace strata

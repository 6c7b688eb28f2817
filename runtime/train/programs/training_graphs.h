#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/fingerprint.h"
#include "ir/module.h"
#include "passes/core/pass.h"
#include "runtime/exec/boxed/boxed_program.h"
#include "runtime/exec/dynamic_executor.h"
#include "runtime/exec/profile.h"
#include "runtime/exec/step/observer.h"
#include "runtime/files/tensor_io.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"
#include "runtime/train/programs/programs.h"

namespace strata {

/// Observers of the passes.
struct CompileWatch {
  std::vector<PassInstrumentation*> watchers;  ///< called in this order
  /// Stable ids below it are taken by the trace that the graphs go to.
  uint64_t first_stable_id = 1;
  /// The run that records the pipeline, "out/t.strata#run=1"; "": none. For the command that
  /// reproduces a failing pass.
  std::string run_ref = {};
  /// Passes must run, though their result may be there
  /// (runtime/train/programs/compiled_artifact.h).
  bool needs_passes = false;
};

/// What the profiled steps took.
struct GraphProfile {
  std::string graph;
  Fingerprint fingerprint;
  std::vector<std::pair<StableId, NodeProfile>> nodes;  ///< in program order
  int32_t rank = 0;                                     ///< among those of this process
};

/// Which nodes of a graph's captured device graph came from which module.
struct GraphKernels {
  std::string graph;
  std::vector<KernelAnnotation> kernels;
};

/// A tensor as the next graph reads it: contiguous. Along a size of 1 a contiguous tensor may have
/// any stride.
at::Tensor AsGraphInput(const at::Tensor& tensor);

/// The graphs of a training, as the passes left them (runtime/train/programs/programs.h names
/// them).
struct TracedTraining {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Constants constants;

  /// Traces for `device` (null: the CPU) and runs the passes; `plan` are the options of the plans
  /// that will run. Call once. Errors: what cannot be traced, a failing pass or instrumentation.
  Status Make(const TrainSpec& spec, std::vector<std::unique_ptr<Pass>> passes,
              const CompileWatch& watch, const PlanOptions& plan, const Device* device);
  /// Instead of `Make`, for graphs that came from a file: shows them as those that a pipeline
  /// without passes starts from. Errors: those of the instrumentations.
  Status Show(const CompileWatch& watch);
};

/// Observes the graphs of training steps, one after the other.
class TrainingObserver : public ExecutionObserver {
 public:
  /// The steps that follow are of `graph`.
  virtual void BeginGraph(const Graph& graph) = 0;
};

/// The plans that run the graphs of a training, on one rank.
/// Not movable: with dynamic sizes, plans are made during the run, too.
class TrainingGraphs {
 public:
  /// Plans run on `device`; null: on the CPU. REQUIRES: the device outlives the graphs.
  TrainingGraphs(PlanOptions options, Device* device) : options_(options), device_(device) {}
  TrainingGraphs(const TrainingGraphs&) = delete;
  TrainingGraphs& operator=(const TrainingGraphs&) = delete;

  /// Lowers the graphs. Call once, on the thread that runs them. REQUIRES: `traced` outlives this.
  Status Bind(const TracedTraining& traced, const TrainConfig& config);

  /// The same for graphs by their names. They run one after the other, in any order and any number
  /// of times, with memory in common; their outputs stay as long as the caller holds them.
  Status BindAll(const TracedTraining& traced, std::span<const std::string> names);

  /// Runs a graph. REQUIRES: it was made.
  Result<std::vector<at::Tensor>> Run(std::string_view graph, std::span<const at::Tensor> inputs);
  /// Its outputs lie in memory that its next run wants.
  bool LendsOutputs(std::string_view graph) const;
  /// The plan of each graph that a step runs, in that order.
  std::vector<const Plan*> StepPlans() const;
  /// The same of a validation.
  std::vector<const Plan*> ValidationPlans() const;

  /// Times the nodes of what runs until `EndStep`, and with `values` looks at what they give.
  void Profile(bool values);
  /// Keeps copies of what the graphs that run until `EndStep` read.
  void KeepInputs() { keep_inputs_ = true; }
  /// Shows each node of what runs until `EndStep`; null: none. Such a step is not profiled.
  void Observe(TrainingObserver* observer) { observer_ = observer; }
  void EndStep();
  std::vector<GraphProfile> Profiles() const;
  /// By the names of the inputs.
  const NamedTensors& kept_inputs() const { return kept_inputs_; }

  std::vector<GraphKernels> Kernels() const;
  /// Peak memory of a step beside its inputs, as planned; 0 on a device. With the
  /// sizes that were last read from data, or those that need most before the first step. What
  /// LibTorch's libraries and compiled code keep for themselves is not counted.
  int64_t planned_bytes() const;
  /// The same for all data-dependent sizes; none: a size has no bound.
  std::optional<int64_t> planned_bytes_at_most() const;
  /// What was done otherwise than asked.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Status Add(std::string_view graph);
  const DynamicExecutor* Find(std::string_view graph) const;
  DynamicExecutor& At(std::string_view graph);
  void Keep(const std::string& graph, std::span<const at::Tensor> inputs);
  /// The optimizer works in memory that the plan of the step does not need between two runs.
  void LendScratch(DynamicExecutor& optimizer);
  /// All graphs use the block of the largest. REQUIRES: outputs are separate.
  void ShareBlock();
  int64_t PeakOf(int64_t (*transient_of)(const PlannedMemory&)) const;

  PlanOptions options_;
  Device* device_;
  const TracedTraining* traced_ = nullptr;
  std::vector<std::pair<std::string, DynamicExecutor>> executors_;  // in the order of a step
  std::vector<std::string> warnings_;
  int64_t lent_after_ = -1;  ///< changes of the step's plan
  bool keep_inputs_ = false, profile_ = false, profile_values_ = false;
  std::map<std::string, NodeProfiler> profilers_;  // by graph
  TrainingObserver* observer_ = nullptr;
  NamedTensors kept_inputs_;
};

}  // namespace strata

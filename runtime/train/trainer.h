#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/fingerprint.h"
#include "ir/module.h"
#include "passes/pipeline/schedule/measured.h"
#include "runtime/comm/nccl_api.h"
#include "runtime/config/config.h"
#include "runtime/files/safetensors.h"
#include "runtime/files/tensor_files.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/processes/process_place.h"
#include "runtime/train/data/data.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/metrics.h"
#include "runtime/train/programs/training_graphs.h"

namespace strata {

/// Cleans up the traced graphs: the pipeline where no other is named.
inline constexpr std::string_view kDefaultPasses = "dce,canonicalize";
/// The same, and kernels whose results are bitwise equal to those of the operators.
inline constexpr std::string_view kFusingPasses = "dce,canonicalize,fuse";

class JointProgram;

struct TrainSetup {
  TrainConfig config;
  std::unique_ptr<DataSource> data;
  std::unique_ptr<DataSource> validation = nullptr;  ///< with config.validator
  /// The step of a model kProgram.
  std::shared_ptr<JointProgram> program = nullptr;
  /// Values of the parameters before step 1; none: drawn as `config.init` says.
  std::optional<TensorFiles> init = std::nullopt;
  std::string passes{kDefaultPasses};
  PlanOptions plan = PlanOptions::FastestTraining();
  /// Inside operators, of all ranks on this machine together (runtime/aten/threads.h).
  int threads = 1;
  /// Which rank this process is; none: it has all ranks.
  std::optional<ProcessPlace> process = std::nullopt;
  /// Where to train; none: a GPU is opened if config.device asks for one, else the CPU.
  std::unique_ptr<Device> device = nullptr;
  /// By which the GPUs of several ranks communicate; null: the library of this build. Outlives the
  /// trainer.
  const NcclApi* nccl = nullptr;
};

/// What one step did.
struct StepReport {
  StepMetrics metrics;
  std::chrono::nanoseconds wall{};
  int64_t tokens = 0;
  struct Executed {
    std::string graph;
    Fingerprint fingerprint;  ///< of the graph that the plan was made from
  };
  std::vector<Executed> executed;
};

/// All that training steps change, at one time (trainer_state.h).
struct TrainingCopy;
struct TrainerState;

/// Trains a model: traces the step and the optimizer, runs the passes, lowers what they leave to
/// plans, and executes those, and nothing else, on the CPU or on a GPU. Several ranks
/// (`config.parallelism`) are threads of this process, or processes: each runs the plans on its
/// part of the state and of each batch. Results, checkpoints among them, are of the whole: they do
/// not depend on the number of ranks but for rounding.
///
/// Processes of one training call the same functions in the same order; those that say so wait for
/// all processes, and fail in all when one is gone.
class Trainer {
 public:
  /// Errors: initial values that do not fit the model, an unknown pass or option, no GPU where one
  /// is asked for; processes that do not come.
  static Result<std::unique_ptr<Trainer>> Create(TrainSetup setup);
  ~Trainer();

  /// Makes the graphs that `Step` runs. Errors: a failing pass, a failing instrumentation, a
  /// graph that cannot be executed. Call once. Waits for all processes.
  Status Compile(const CompileWatch& watch = {});

  /// Whether there is a next step: false after config().steps, or when the data do not last for
  /// it. Errors: data that cannot be used.
  Result<bool> HasNext();
  /// The next step. Errors: no data for it; a loss or norm that is not finite
  /// (`config.finite_check`): parameters are of no use then. Waits for all processes. REQUIRES:
  /// compiled; steps_done() < config().steps.
  /// `observer` sees each node that the first rank executes; null: none.
  Result<StepReport> Step(TrainingObserver* observer = nullptr);
  /// The same step, bit for bit, by calling with autograd what the graphs were traced from: to
  /// compare with and to measure against. Executes no graph. REQUIRES: steps_done() <
  /// config().steps; one rank; the model is not kProgram.
  Result<StepReport> StepEagerly();
  int64_t steps_done() const;
  /// The state of all ranks and the place in the data, to return to. REQUIRES: compiled.
  std::shared_ptr<const TrainingCopy> Copy() const;
  /// The steps that follow are, bit for bit, those that followed when the copy was made. Also after
  /// a step that failed. Errors: the data cannot be read there any more.
  Status Return(const TrainingCopy& copy);
  static int64_t StepsOf(const TrainingCopy& copy);
  /// The base of the learning rates from the next update on.
  void SetLearningRate(double rate);

  /// Whether the step that was done last is one to validate after.
  bool IsValidationStep() const;
  /// Adds to the report of the step that was done last the mean loss of the validation data, from
  /// their beginning, with the parameters as they are. Waits for all processes. REQUIRES: compiled,
  /// config().validator.enable.
  Status Validate(StepReport& report);

  /// Times the nodes of the next step's graphs, and with `values` looks at what they give.
  /// REQUIRES: compiled.
  void ProfileNext(bool values);
  /// Of all ranks of this process, in their order.
  std::vector<GraphProfile> Profiles() const;

  /// What the ranks of a pipeline did in the last step, if `ProfileNext` was called before it: in
  /// the last run of the schedule, by the first rank of each stage. Times are ns of
  /// std::chrono::steady_clock: of the machine's, where ranks are processes. Empty on processes
  /// without rank 0, and without a pipeline.
  const std::vector<MeasuredAction>& MeasuredActions() const;

  /// Keeps copies of what the graphs of the next step read. REQUIRES: compiled; all ranks are of
  /// this process, and none is of a pipeline.
  void KeepInputs();
  /// Writes them, whole, by the names of the inputs (runtime/files/tensor_io.h).
  Status SaveInputs(const std::string& path) const;

  /// What a run needs to resume from here. The bytes are valid until the next step. REQUIRES of
  /// the tensors: as `Parameters`.
  CheckpointInfo Position() const;
  std::vector<TensorView> OptimizerTensors() const;
  /// Resumes from there. Returns warnings: traits of the data, fields of the configuration, and the
  /// number of threads, that differ from the run before.
  /// Errors: tensors that are not this configuration's, more steps than it has, other data or
  /// another order of them.
  Result<std::vector<std::string>> Restore(const Checkpoint& checkpoint);

  /// Of the graphs that a device graph was captured of.
  std::vector<GraphKernels> Kernels() const;

  /// Whether copies of the gradients of the steps from now on are kept for `Gradients`: the
  /// optimizer uses the memory of gradients.
  void KeepGradients(bool keep = true);
  /// Whether they were kept in the last step.
  bool has_gradients() const;

  /// Whether this process has rank 0, and thus what ranks gather: it writes the results.
  bool has_first_rank() const;
  /// Brings parameters and optimizer state, or gradients, of the ranks of all processes together,
  /// as `Parameters`, `OptimizerTensors` and `Gradients` need it when ranks are processes. Waits
  /// for all processes.
  Status GatherState();
  Status GatherGradients();
  /// Whether it is true in any process. Waits for all processes.
  Result<bool> IsTrueInAnyProcess(bool mine, const char* what);
  /// Waits until all processes have come to the end: until then one may fail.
  Status Finish();
  /// Reports to the other processes why this one stops.
  void ReportFailure(const Error& error);

  /// The parameters now, and with them the buffers, or the gradients of the last step before
  /// clipping, by parameter name. The bytes are valid until the next step. REQUIRES:
  /// has_first_rank(); gathered; has_gradients().
  std::vector<TensorView> Parameters() const;
  std::vector<TensorView> Gradients() const;

  const TrainConfig& config() const;
  /// The passes between trace and execution, as text: what the configuration left of the setup's.
  const std::string& pipeline() const;
  /// Null on the CPU.
  Device* device() const;
  /// Peak memory of a step beside parameters, optimizer state and data, as planned; 0 for
  /// plain plans. Where sizes are read from data: with those of the last step; before the first, as
  /// `planned_bytes_at_most`. REQUIRES: compiled.
  int64_t planned_bytes() const;
  /// The same for the sizes that need most; none: there is no most. REQUIRES: compiled.
  std::optional<int64_t> planned_bytes_at_most() const;
  /// Warnings: deviations from the configuration.
  std::vector<std::string> warnings() const;
  /// What the data of the steps so far lost, in a sentence (DataSource::Warning).
  std::string DataWarning() const;
  /// The graphs as the passes left them: what runs.
  const Module& module() const;

 private:
  explicit Trainer(std::unique_ptr<TrainerState> state);
  std::unique_ptr<TrainerState> state_;
};

}  // namespace strata

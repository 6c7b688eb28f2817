#include "runtime/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/threads.h"
#include "runtime/config/course.h"
#include "runtime/files/tensor_io.h"
#include "runtime/models/library_model.h"
#include "runtime/models/model.h"
#include "runtime/plan/device/cuda_loader.h"
#include "runtime/ranks/process_team.h"
#include "runtime/ranks/thread_team.h"
#include "runtime/trace/scope.h"
#include "runtime/train/batch_feed.h"
#include "runtime/train/compiled_artifact.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/joint_program.h"
#include "runtime/train/param_groups.h"
#include "runtime/train/pipeline.h"
#include "runtime/train/programs.h"
#include "runtime/train/rank_training.h"
#include "runtime/train/schedule.h"
#include "runtime/train/stage_owners.h"
#include "runtime/train/state_sharding.h"
#include "runtime/train/training_ranks.h"
#include "runtime/train/training_state.h"

namespace strata {
namespace {

using at::Tensor;

c10::Device PlaceOf(const Device* device) {
  return c10::Device(device != nullptr ? device->traits().name : "cpu");
}

/// What a training on several ranks cannot have yet.
Status CheckRanks(const TrainSetup& setup) {
  const TrainConfig& config = setup.config;
  const Mesh& mesh = config.parallelism.mesh;
  if (mesh.num_ranks() == 1) return Ok();
  if (setup.device || config.device == DeviceKind::kCuda) {
    return Error(ErrorCode::kUnsupported,
                 "several ranks train on the CPU: parallelism: the degrees make {} ({}), take "
                 "device = 'cpu'",
                 mesh.num_ranks(), mesh.Text());
  }
  if (constexpr int64_t kMost = 256; !setup.process && mesh.num_ranks() > kMost) {
    return Error(ErrorCode::kUnsupported,
                 "more ranks than a process has: parallelism: the degrees make {} ({}), take at "
                 "most {}; strata trace --world makes graphs of more",
                 mesh.num_ranks(), mesh.Text(), kMost);
  }
  if (config.compile.symbolic_batch || config.compile.symbolic_seq) {
    return Error(ErrorCode::kUnsupported,
                 "several ranks have batches of one size: compile.symbolic_dims: take 'none'");
  }
  return Ok();
}

/// What a model of the user's needs.
Status CheckOwnModel(const TrainSetup& setup) {
  STRATA_RETURN_IF_ERROR(LoadModelLibrary(setup.config));
  if (setup.config.model != ModelFamily::kProgram) return Ok();
  STRATA_CHECK(setup.program != nullptr);
  if (setup.init) return Ok();
  return Error("a program has no initial values: {}: give parameters and constants by --init FILE",
               setup.config.model_path);
}

/// Graphs in a file are those of a model that is traced, for the CPU.
Status CheckArtifact(const TrainSetup& setup) {
  const TrainConfig& config = setup.config;
  if (config.compile.precompile_artifact_dir.empty()) return Ok();
  if (config.model == ModelFamily::kProgram) {
    return Error(ErrorCode::kUnsupported,
                 "a program was traced already: compile.precompile_artifact_dir: remove it");
  }
  if (setup.device == nullptr) return Ok();
  return Error(ErrorCode::kUnsupported,
               "stored graphs are for the CPU: compile.precompile_artifact_dir: take device = "
               "'cpu', or remove it");
}

}  // namespace

struct TrainingCopy {
  int64_t steps_done = 0, tokens_seen = 0, first_scheduled_step = 0;
  double rate = 0.0;
  std::string data_position;
  std::vector<std::vector<Tensor>> tensors;  // of each rank's state; undefined: of other stages
};

struct Trainer::State {
  State(TrainSetup setup, TrainSpec train_spec, std::vector<std::unique_ptr<Pass>> pipeline_passes,
        const std::optional<InitialWeights>& given)
      : spec(std::move(train_spec)),
        device(std::move(setup.device)),
        feed(config, std::move(setup.data), PlaceOf(device.get())),
        validation(std::move(setup.validation)),
        threads(setup.threads),
        plan(setup.plan),
        passes(std::move(pipeline_passes)),
        ranks(std::make_unique<RankTraining>(spec, plan, device.get(),
                                             TrainingState(spec, given, PlaceOf(device.get())))) {
    if (setup.process) process_rank = setup.process->rank;
    for (const std::unique_ptr<Pass>& pass : passes)
      pipeline += fmt::format("{}{}", pipeline.empty() ? "" : ",", pass->Text());
  }

  TrainSpec spec;
  const TrainConfig& config = spec.config;
  std::unique_ptr<Device> device;  // before what may hold its memory and graphs
  BatchFeed feed;
  std::unique_ptr<DataSource> validation;
  int threads;
  PlanOptions plan;
  std::vector<std::unique_ptr<Pass>> passes;  // until they ran
  std::string pipeline;                       // their text
  TracedTraining traced;
  std::vector<std::string> warnings;    // of making the graphs
  std::unique_ptr<RankTeam> processes;  // of this one and others, until the ranks have their parts
  int64_t process_rank = 0;
  std::optional<PipelineSchedule> schedule;  // of a pipeline
  RankPrograms actions;                      // the same
  int64_t loss_rank = 0;
  TrainingRanks ranks;  // after what their threads use

  int64_t num_runs = 0;  // steps of this run
  int64_t steps_done = 0;
  int64_t tokens_seen = 0;
  int64_t step_tokens = 0;  // of the last step
  int64_t first_scheduled_step = 0;

  RankTraining& first() const { return ranks.first(); }
  /// Those that run graphs of their own: all of a pipeline, otherwise one for all.
  std::span<const std::unique_ptr<RankTraining>> programs() const {
    return std::span(ranks.all()).first(schedule ? ranks.all().size() : 1);
  }
  DeviceTraits Target() const { return device ? device->traits() : DeviceTraits(); }

  Status Compile(const CompileWatch& watch) {
    STRATA_RETURN_IF_ERROR(MakeGraphs(watch));
    if (config.parallelism.mesh.num_ranks() > 1) STRATA_RETURN_IF_ERROR(Distribute());
    std::mutex one_at_a_time;  // they make the same kernels
    return ranks.ForEach([&](int64_t rank, RankTraining& training) {
      const std::lock_guard lock(one_at_a_time);
      return config.parallelism.pipeline.degree > 1 ? BindPipeline(rank, training)
                                                    : training.Bind(traced);
    });
  }

  /// Traces and runs the passes, unless another rank or run left what they give.
  Status MakeGraphs(const CompileWatch& watch) {
    const auto make = [&] {
      return traced.Make(spec, std::exchange(passes, {}), watch, plan, device.get());
    };
    const std::string& folder = config.compile.precompile_artifact_dir;
    if (folder.empty() || watch.needs_passes) return make();
    STRATA_TRY(ArtifactFields fields, ArtifactFieldsOf(spec, pipeline, plan));
    CompiledArtifact artifact(folder, std::move(fields),
                              std::chrono::seconds(config.parallelism.init_timeout_seconds));
    STRATA_RETURN_IF_ERROR(artifact.Take(traced, make));
    warnings = artifact.warnings();
    return artifact.was_loaded() ? traced.Show(watch) : Ok();
  }

  /// Gives each rank its part of the state.
  Status Distribute() {
    const Mesh& mesh = config.parallelism.mesh;
    std::optional<StageOwners> owners;
    if (config.parallelism.pipeline.degree > 1) {
      STRATA_TRY(schedule, ScheduleOf(config.parallelism.pipeline));
      STRATA_TRY(actions, LowerSchedule(*schedule));
      STRATA_TRY(owners, StageOwners::Make(*traced.module, spec, *schedule));
      loss_rank = owners->loss * config.parallelism.stage_mesh.num_ranks();
    }
    STRATA_TRY(StateSharding sharding,
               StateSharding::Make(traced, spec, config.parallelism.stage_mesh,
                                   owners ? &*owners : nullptr));
    std::unique_ptr<RankTeam> team = std::move(processes);
    if (!team) {
      team = std::make_unique<ThreadTeam>(
          mesh, ThreadTeam::Options{
                    .timeout = std::chrono::seconds(config.parallelism.init_timeout_seconds),
                    .threads = std::max(1, threads / static_cast<int>(mesh.num_ranks()))});
    }
    return ranks.Distribute(traced, spec, std::move(sharding), plan, device.get(), std::move(team),
                            steps_done);
  }

  Status BindPipeline(int64_t rank, RankTraining& training) {
    const int64_t stride = config.parallelism.stage_mesh.num_ranks();
    const int64_t pipeline_rank = rank / stride;
    return training.BindPipeline(traced, *schedule, actions[static_cast<size_t>(pipeline_rank)],
                                 pipeline_rank, stride);
  }

  /// Whether this process takes the results of a step from `rank`; `one` has them where the process
  /// has all ranks.
  bool IsTaken(int64_t rank, int64_t one) const { return !ranks.is_one_process() || rank == one; }

  Result<std::vector<BatchTensors>> TakeBatches() {
    STRATA_TRY(std::vector<BatchTensors> batches, feed.Take(steps_done + 1));
    if (ranks.is_distributed() && num_runs++ == 1)
      ranks.team()->set_timeout(std::chrono::seconds(config.parallelism.train_timeout_seconds));
    ranks.DropGathered();
    step_tokens = 0;
    for (const BatchTensors& batch : batches)
      step_tokens += batch.tokens.numel();
    return batches;
  }

  /// Of the next update, for parameters whose rate is `lr`.
  double Rate(double lr) const {
    return LearningRate(config, steps_done - first_scheduled_step, lr);
  }

  UpdateRates Rates() const {
    UpdateRates rates{.lr = Rate(config.optimizer.lr), .groups = {}};
    for (const double lr : GroupLearningRates(config.optimizer))
      rates.groups.push_back(Rate(lr));
    return rates;
  }

  Result<double> RunGraphs() {
    STRATA_TRY(const std::vector<BatchTensors> batches, TakeBatches());
    double loss = 0.0;
    STRATA_RETURN_IF_ERROR(ranks.ForEach([&](int64_t rank, RankTraining& training) -> Status {
      std::vector<RankTraining::BatchInputs> parts;
      for (const BatchTensors& batch : batches)
        parts.push_back(ranks.PartOf(batch, rank));
      STRATA_TRY(const double of_rank, training.RunStep(parts));
      const double shared =
          schedule && !ranks.is_one_process() ? ShareLoss(rank, of_rank) : of_rank;
      if (IsTaken(rank, loss_rank)) loss = shared;
      return Ok();
    }));
    return loss;
  }

  /// The loss of a pipeline, which its last stage knows, on every rank. Throws as
  /// RankTeam::Receive.
  double ShareLoss(int64_t rank, double of_rank) const {
    const std::string key = "loss";
    if (rank != loss_rank) return RankTeam::Receive(loss_rank, key)[0].item<double>();
    for (int64_t other = 0; other < config.parallelism.mesh.num_ranks(); ++other)
      if (other != rank) RankTeam::Send(other, key, {at::scalar_tensor(of_rank, at::kDouble)});
    return of_rank;
  }

  Result<double> RunOptimizer() {
    const UpdateRates rates = Rates();
    double norm = 0.0;
    STRATA_RETURN_IF_ERROR(ranks.ForEach([&](int64_t rank, RankTraining& training) -> Status {
      STRATA_TRY(const double of_rank, training.Update(rates));
      if (IsTaken(rank, 0)) norm = of_rank;
      return Ok();
    }));
    return norm;
  }

  /// Sum of the losses and number of the labels of a batch.
  Result<std::pair<double, double>> ValidateOn(const BatchTensors& batch) {
    std::pair<double, double> sums;
    STRATA_RETURN_IF_ERROR(ranks.ForEach([&](int64_t rank, RankTraining& training) -> Status {
      STRATA_TRY(const auto of_rank, training.Validate(ranks.PartOf(batch, rank)));
      if (IsTaken(rank, 0)) sums = of_rank;
      return Ok();
    }));
    return sums;
  }

  /// A step: the loss, which must be finite before anything is updated, then the update.
  template <class Loss, class Update>
  Result<StepReport> RunAndReport(Loss loss, Update update) {
    STRATA_CHECK(steps_done < config.steps);
    const auto start = std::chrono::steady_clock::now();
    StepReport report;
    report.metrics.step = steps_done + 1;
    report.metrics.lr = Rate(config.optimizer.lr);
    STRATA_TRY(report.metrics.loss, loss());
    STRATA_RETURN_IF_ERROR(CheckFinite("loss", report.metrics.loss));
    STRATA_TRY(report.metrics.grad_norm, update());
    STRATA_RETURN_IF_ERROR(CheckFinite("gradient norm", report.metrics.grad_norm));
    report.wall = std::chrono::steady_clock::now() - start;
    ++steps_done;
    report.tokens = step_tokens;
    tokens_seen += report.tokens;
    return report;
  }

  Status CheckFinite(std::string_view what, double value) const {
    if (!config.finite_check || std::isfinite(value)) return Ok();
    return Error("{} is {}: step {}: lower optimizer.lr, or look at the data of this step", what,
                 std::isnan(value) ? "nan" : "infinite", steps_done + 1);
  }
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Create(TrainSetup setup) {
  const TrainConfig& config = setup.config;
  STRATA_RETURN_IF_ERROR(CheckRanks(setup));
  if (setup.device == nullptr && config.device == DeviceKind::kCuda) {
    STRATA_TRY(setup.device, OpenCuda({.deterministic = config.deterministic,
                                       .warn_only = config.deterministic_warn_only,
                                       .allow_tf32 = config.allow_tf32}));
  }
  STRATA_RETURN_IF_ERROR(CheckOwnModel(setup));
  STRATA_RETURN_IF_ERROR(CheckArtifact(setup));
  TrainSpec spec = setup.program ? TrainSpec(config, setup.program) : TrainSpec(config);
  const ModelSpecs& specs = spec.model;
  std::optional<InitialWeights> given;
  if (setup.init) {
    std::vector<ParameterSpec> stored = specs.parameters;
    stored.insert(stored.end(), specs.buffers.begin(), specs.buffers.end());
    if (setup.program) {
      const std::vector<ParameterSpec>& constants = setup.program->constants();
      stored.insert(stored.end(), constants.begin(), constants.end());
    }
    STRATA_TRY(given, InitialWeights::Match(*std::move(setup.init), config, stored));
    if (setup.program) setup.program->SetConstants(*given);
  }
  // Errors are reported before any initial value is computed.
  if (auto groups = AdamWOfParameters(config.optimizer, specs.parameters); !groups) {
    return std::move(groups).error();
  }
  STRATA_TRY(std::vector<std::unique_ptr<Pass>> passes, TrainingPasses(config, setup.passes));
  std::unique_ptr<RankTeam> processes;
  if (setup.process) {
    const ParallelismConfig& parallelism = config.parallelism;
    STRATA_TRY(processes,
               ProcessTeam::Connect(parallelism.mesh, *setup.process,
                                    std::chrono::seconds(parallelism.init_timeout_seconds)));
  }
  const int64_t local_processes = setup.process ? setup.process->local_world : 1;
  SetThreads(std::max(1, setup.threads / static_cast<int>(local_processes)));
  auto state = std::make_unique<State>(std::move(setup), std::move(spec), std::move(passes), given);
  state->processes = std::move(processes);
  return std::unique_ptr<Trainer>(new Trainer(std::move(state)));
}

Status Trainer::Compile(const CompileWatch& watch) {
  return state_->Compile(watch);
}

Result<bool> Trainer::HasNext() {
  if (state_->steps_done == state_->config.steps) return false;
  return state_->feed.HasNext();
}

Result<StepReport> Trainer::Step(TrainingObserver* observer) {
  state_->first().graphs().Observe(observer);
  STRATA_TRY(StepReport report, state_->RunAndReport([&] { return state_->RunGraphs(); },
                                                     [&] { return state_->RunOptimizer(); }));
  for (const std::unique_ptr<RankTraining>& rank : state_->programs()) {
    rank->graphs().EndStep();
    for (const Plan* plan : rank->graphs().StepPlans()) {
      const bool is_known =
          std::ranges::find(report.executed, plan->graph, &StepReport::Executed::graph) !=
          report.executed.end();
      if (!is_known)
        report.executed.push_back({.graph = plan->graph, .fingerprint = plan->graph_fingerprint});
    }
  }
  return report;
}

Result<StepReport> Trainer::StepEagerly() {
  const TargetScope target(state_->Target());
  STRATA_CHECK(!state_->ranks.is_distributed(), "ranks run graphs");
  RankTraining& training = state_->first();
  return state_->RunAndReport(
      [&]() -> Result<double> {
        STRATA_TRY(const std::vector<BatchTensors> batches, state_->TakeBatches());
        return training.RunStepEagerly(batches);
      },
      [&] { return training.UpdateEagerly(state_->Rates()); });
}

std::shared_ptr<const TrainingCopy> Trainer::Copy() const {
  auto copy = std::make_shared<TrainingCopy>(
      TrainingCopy{.steps_done = state_->steps_done,
                   .tokens_seen = state_->tokens_seen,
                   .first_scheduled_step = state_->first_scheduled_step,
                   .rate = state_->config.optimizer.lr,
                   .data_position = state_->feed.Position(),
                   .tensors = {}});
  for (const std::unique_ptr<RankTraining>& rank : state_->ranks.all()) {
    std::vector<Tensor>& tensors = copy->tensors.emplace_back();
    for (const Tensor* tensor : rank->state().Tensors())
      tensors.push_back(tensor->defined() ? tensor->clone() : Tensor());  // of another stage
  }
  return copy;
}

Status Trainer::Return(const TrainingCopy& copy) {
  const c10::InferenceMode no_autograd;
  for (size_t rank = 0; rank < state_->ranks.all().size(); ++rank) {
    const std::vector<Tensor*> tensors = state_->ranks.all()[rank]->state().Tensors();
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i]->defined()) tensors[i]->copy_(copy.tensors[rank][i]);
  }
  state_->steps_done = copy.steps_done;
  state_->tokens_seen = copy.tokens_seen;
  state_->first_scheduled_step = copy.first_scheduled_step;
  state_->spec.config.optimizer.lr = copy.rate;
  state_->ranks.DropGathered();
  return state_->feed.Seek(copy.data_position);
}

int64_t Trainer::StepsOf(const TrainingCopy& copy) {
  return copy.steps_done;
}

void Trainer::SetLearningRate(double rate) {
  state_->spec.config.optimizer.lr = rate;
}

int64_t Trainer::steps_done() const {
  return state_->steps_done;
}

bool Trainer::IsValidationStep() const {
  const ValidatorConfig& validator = state_->config.validator;
  const int64_t step = state_->steps_done;
  return validator.enable && step > 0 && (step == 1 || step % validator.freq == 0);
}

Result<double> Trainer::Validate() {
  STRATA_CHECK(state_->validation);
  const ValidatorConfig& validator = state_->config.validator;
  STRATA_RETURN_IF_ERROR(state_->validation->Rewind());
  double sum = 0.0, labels = 0.0;
  for (int64_t step = 0; validator.steps < 0 || step < validator.steps; ++step) {
    STRATA_TRY(const std::optional<Batch> batch, state_->validation->Next());
    if (!batch) break;
    BatchTensors tensors = ToTensors(state_->config, *batch, 0, PlaceOf(state_->device.get()));
    tensors.valid_labels = Tensor();
    STRATA_TRY(const auto of_batch, state_->ValidateOn(tensors));
    sum += of_batch.first;
    labels += of_batch.second;
  }
  if (labels == 0.0) {
    return Error("no labels to validate on: {}: give a file that fills a batch",
                 fmt::join(validator.dataset_path, ", "));
  }
  const double mean = sum / labels;
  return state_->config.dtype == Precision::kFloat64 ? mean : static_cast<float>(mean);
}

void Trainer::ProfileNext(bool values) {
  for (const std::unique_ptr<RankTraining>& rank : state_->programs())
    rank->graphs().Profile(values);
}

std::vector<GraphProfile> Trainer::Profiles() const {
  std::vector<GraphProfile> profiles;
  for (const std::unique_ptr<RankTraining>& rank : state_->programs()) {
    for (GraphProfile& profile : rank->graphs().Profiles()) {
      // Ranks of one stage run the same graphs.
      if (std::ranges::find(profiles, profile.graph, &GraphProfile::graph) == profiles.end())
        profiles.push_back(std::move(profile));
    }
  }
  return profiles;
}

void Trainer::KeepInputs() {
  for (const std::unique_ptr<RankTraining>& rank : state_->programs())
    rank->graphs().KeepInputs();
}

Status Trainer::SaveInputs(const std::string& path) const {
  NamedTensors kept;
  for (const std::unique_ptr<RankTraining>& rank : state_->programs())
    kept.insert(rank->graphs().kept_inputs().begin(), rank->graphs().kept_inputs().end());
  const std::vector<std::pair<std::string, Tensor>> tensors(kept.begin(), kept.end());
  return SaveTensors(path, tensors);
}

CheckpointInfo Trainer::Position() const {
  CheckpointInfo info{.step = state_->steps_done,
                      .tokens_seen = state_->tokens_seen,
                      .first_scheduled_step = state_->first_scheduled_step,
                      .data_position = state_->feed.Position(),
                      .data_traits = {}};
  if (state_->device == nullptr) info.threads = state_->threads;
  for (const DataTrait& trait : state_->feed.Traits())
    info.data_traits.emplace(trait.name, trait.value);
  info.config = CourseFields(state_->config);
  return info;
}

std::vector<TensorView> Trainer::OptimizerTensors() const {
  return state_->ranks.state().OptimizerViews();
}

Result<std::vector<std::string>> Trainer::Restore(const Checkpoint& checkpoint) {
  const CheckpointConfig::Exclude& exclude = state_->config.checkpoint.exclude_from_loading;
  STRATA_RETURN_IF_ERROR(state_->first().state().Restore(checkpoint, exclude));
  const CheckpointInfo& info = checkpoint.info;
  if (info.step > state_->config.steps) {
    return Error(
        "checkpoint of a longer run: {}: {} steps are done, steps = {}; train more steps, or "
        "take another with checkpoint.load_step",
        checkpoint.model.path(), info.step, state_->config.steps);
  }
  std::vector<std::string> differences;
  if (!exclude.dataloader) {
    STRATA_TRY(differences,
               CompareTraits(info.data_traits, state_->feed.Traits(), checkpoint.model.path()));
    STRATA_RETURN_IF_ERROR(state_->feed.Seek(info.data_position));
  }
  if (state_->device == nullptr && info.threads > 0 && info.threads != state_->threads) {
    differences.push_back(fmt::format(
        "written by a run with --threads {}, this one has {}: {}: sums may round differently, "
        "--threads {} keeps the bits",
        info.threads, state_->threads, checkpoint.model.path(), info.threads));
  }
  if (!info.config.empty()) {
    const std::string changes = ChangesSince(info.config, state_->config);
    if (!changes.empty()) {
      differences.push_back(fmt::format("the configuration is not that of the checkpoint: {}: {}",
                                        checkpoint.model.path(), changes));
    }
  }
  state_->steps_done = info.step;
  state_->first_scheduled_step = exclude.lr_scheduler ? info.step : info.first_scheduled_step;
  state_->tokens_seen = info.tokens_seen;
  return differences;
}

std::vector<GraphKernels> Trainer::Kernels() const {
  return state_->first().graphs().Kernels();
}

void Trainer::KeepGradients() {
  state_->first().KeepGradients();
}

bool Trainer::has_first_rank() const {
  return state_->process_rank == 0;
}

Status Trainer::GatherState() {
  return state_->ranks.GatherState();
}

Status Trainer::GatherGradients() {
  return state_->ranks.GatherGradients();
}

Result<bool> Trainer::IsTrueInAnyProcess(bool mine, const char* what) {
  return state_->ranks.IsTrueInAnyProcess(mine, what);
}

Status Trainer::Finish() {
  auto at_end = IsTrueInAnyProcess(false, "end of the run");
  if (!at_end) return std::move(at_end).error();
  return Ok();
}

void Trainer::ReportFailure(const Error& error) {
  RankTeam* const team = state_->processes ? state_->processes.get() : state_->ranks.team();
  if (team != nullptr) team->ReportFailure(error);
}

std::vector<TensorView> Trainer::Parameters() const {
  return state_->ranks.state().ModelViews();
}

std::vector<TensorView> Trainer::Gradients() const {
  return state_->first().state().ViewsByParameter(state_->ranks.gradients());
}

const std::string& Trainer::pipeline() const {
  return state_->pipeline;
}

const TrainConfig& Trainer::config() const {
  return state_->config;
}

Device* Trainer::device() const {
  return state_->device.get();
}

int64_t Trainer::planned_bytes() const {
  return state_->first().graphs().planned_bytes();
}

std::optional<int64_t> Trainer::planned_bytes_at_most() const {
  return state_->first().graphs().planned_bytes_at_most();
}

std::vector<std::string> Trainer::warnings() const {
  std::vector<std::string> all = state_->warnings;
  const std::vector<std::string>& of_graphs = state_->first().graphs().warnings();
  all.insert(all.end(), of_graphs.begin(), of_graphs.end());
  return all;
}

std::string Trainer::DataWarning() const {
  return state_->feed.Warning();
}

const Module& Trainer::module() const {
  return *state_->traced.module;
}

}  // namespace strata

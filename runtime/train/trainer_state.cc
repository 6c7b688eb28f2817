#include "runtime/train/trainer_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include <ATen/ops/tensor.h>

#include <fmt/format.h>

#include "runtime/aten/threads.h"
#include "runtime/comm/nccl_loader.h"
#include "runtime/models/library_model.h"
#include "runtime/models/model.h"
#include "runtime/plan/device/cuda_loader.h"
#include "runtime/ranks/processes/process_team.h"
#include "runtime/ranks/thread_team.h"
#include "runtime/train/pipeline/stage_owners.h"
#include "runtime/train/programs/compiled_artifact.h"
#include "runtime/train/programs/joint_program.h"
#include "runtime/train/programs/param_groups.h"
#include "runtime/train/programs/schedule.h"
#include "runtime/train/random_numbers.h"
#include "runtime/train/state_sharding.h"
#include "runtime/train/training_state.h"

namespace strata {
namespace {

/// What a training on several ranks cannot have yet.
Status CheckRanks(const TrainSetup& setup) {
  const TrainConfig& config = setup.config;
  const Mesh& mesh = config.parallelism.mesh;
  if (mesh.num_ranks() == 1) return Ok();
  const bool is_on_gpu = setup.device || config.device == DeviceKind::kCuda;
  if (is_on_gpu && !setup.process) {
    return Error(
        ErrorCode::kUnsupported,
        "ranks on GPUs are processes: parallelism: the degrees make {} ({}), start as many "
        "by --nproc or a launcher, or take device = 'cpu'",
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

/// Graphs in a file are those of a model that is traced.
Status CheckArtifact(const TrainConfig& config) {
  if (config.compile.precompile_artifact_dir.empty() || config.model != ModelFamily::kProgram)
    return Ok();
  return Error(ErrorCode::kUnsupported,
               "a program was traced already: compile.precompile_artifact_dir: remove it");
}

/// Opens the GPU of this process, and NCCL where there are others.
Status OpenDevice(TrainSetup& setup) {
  const TrainConfig& config = setup.config;
  if (setup.device == nullptr && config.device == DeviceKind::kCuda) {
    if (setup.process) {
      STRATA_TRY(const std::string gpu, setup.process->VisibleGpu());
      ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), /*overwrite=*/1);
    }
    STRATA_TRY(setup.device, OpenCuda({.deterministic = config.deterministic,
                                       .warn_only = config.deterministic_warn_only,
                                       .allow_tf32 = config.allow_tf32}));
  }
  if (setup.device == nullptr || !setup.process || setup.nccl != nullptr) return Ok();
  STRATA_TRY(const NcclLibrary library, NcclLibrary::Load());
  setup.nccl = &library.api();
  return Ok();
}

}  // namespace

Result<std::unique_ptr<TrainerState>> TrainerState::Make(TrainSetup setup) {
  const TrainConfig& config = setup.config;
  STRATA_RETURN_IF_ERROR(CheckRanks(setup));
  STRATA_RETURN_IF_ERROR(OpenDevice(setup));
  STRATA_RETURN_IF_ERROR(CheckOwnModel(setup));
  STRATA_RETURN_IF_ERROR(CheckArtifact(config));
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
  }
  if (auto groups = AdamWOfParameters(config.optimizer, specs.parameters); !groups) {
    return std::move(groups).error();
  }
  STRATA_TRY(std::vector<std::unique_ptr<Pass>> passes, TrainingPasses(config, setup.passes));
  std::unique_ptr<ProcessTeam> processes;
  if (setup.process) {
    const ParallelismConfig& parallelism = config.parallelism;
    STRATA_TRY(processes,
               ProcessTeam::Connect(parallelism.mesh, *setup.process,
                                    std::chrono::seconds(parallelism.init_timeout_seconds)));
    if (setup.device) processes->UseDevice(*setup.device, *setup.nccl);
  }
  const int64_t local_processes = setup.process ? setup.process->local_world : 1;
  SetThreads(std::max(1, setup.threads / static_cast<int>(local_processes)));
  setup.plan.offload_folder = setup.config.compile.offload_folder;
  auto state = std::make_unique<TrainerState>(std::move(setup), std::move(spec), std::move(passes),
                                              std::move(given));
  state->processes = std::move(processes);
  return state;
}

TrainerState::TrainerState(TrainSetup setup, TrainSpec train_spec,
                           std::vector<std::unique_ptr<Pass>> pipeline_passes,
                           std::optional<InitialWeights> given)
    : spec(std::move(train_spec)),
      device(std::move(setup.device)),
      feed(config, std::move(setup.data), place()),
      validation(std::move(setup.validation)),
      threads(setup.threads),
      plan(setup.plan),
      passes(std::move(pipeline_passes)),
      ranks(std::make_unique<RankTraining>(
          spec, plan, device.get(),
          MakeBeside(spec, std::move(given), state_place(), NumThreads()))) {
  if (setup.process) process_rank = setup.process->rank;
  for (const std::unique_ptr<Pass>& pass : passes)
    pipeline += fmt::format("{}{}", pipeline.empty() ? "" : ",", pass->Text());
}

c10::Device TrainerState::place() const {
  return c10::Device(device != nullptr ? device->traits().name : "cpu");
}

/// The whole state of several ranks is made in the memory of the CPU: a GPU may not have room for
/// more than its part.
c10::Device TrainerState::state_place() const {
  return config.parallelism.mesh.num_ranks() > 1 ? c10::Device(c10::kCPU) : place();
}

Status TrainerState::Compile(const CompileWatch& watch) {
  STRATA_RETURN_IF_ERROR(MakeGraphs(watch));
  draws_random = DrawsRandomNumbers(*traced.module);
  if (config.parallelism.mesh.num_ranks() > 1) STRATA_RETURN_IF_ERROR(Distribute());
  std::mutex one_at_a_time;  // they make the same kernels
  const Status bound = ranks.ForEach([&](int64_t rank, RankTraining& training) {
    const std::lock_guard lock(one_at_a_time);
    return config.parallelism.pipeline.degree > 1 ? BindPipeline(rank, training)
                                                  : training.Bind(traced);
  });
  first().state();  // made before the first step, whose time is measured
  return bound;
}

/// Traces and runs the passes, unless another rank or run left what they give.
Status TrainerState::MakeGraphs(const CompileWatch& watch) {
  const auto make = [&] {
    return traced.Make(spec, std::exchange(passes, {}), watch, plan, device.get());
  };
  const std::string& folder = config.compile.precompile_artifact_dir;
  if (folder.empty() || watch.needs_passes) return make();
  STRATA_TRY(ArtifactFields fields, ArtifactFieldsOf(spec, pipeline, plan, Target()));
  CompiledArtifact artifact(folder, std::move(fields), c10::Device(Target().name),
                            std::chrono::seconds(config.parallelism.init_timeout_seconds));
  STRATA_RETURN_IF_ERROR(artifact.Take(traced, make));
  warnings = artifact.warnings();
  return artifact.was_loaded() ? traced.Show(watch) : Ok();
}

/// Gives each rank its part of the state.
Status TrainerState::Distribute() {
  const Mesh& mesh = config.parallelism.mesh;
  std::optional<StageOwners> owners;
  if (config.parallelism.pipeline.degree > 1) {
    STRATA_TRY(schedule, ScheduleOf(config.parallelism.pipeline));
    STRATA_TRY(actions, LowerSchedule(*schedule));
    DelayReceptions(actions);
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
  if (const std::string& network = config.parallelism.simulated_network; !network.empty()) {
    STRATA_TRY(Topology topology, Topology::Load(network));
    team->SimulateNetwork(std::move(topology));
  }
  return ranks.Distribute(traced, spec, std::move(sharding), plan, device.get(), std::move(team),
                          steps_done);
}

Status TrainerState::BindPipeline(int64_t rank, RankTraining& training) {
  const int64_t stride = config.parallelism.stage_mesh.num_ranks();
  const int64_t pipeline_rank = rank / stride;
  return training.BindPipeline(traced, *schedule, actions[static_cast<size_t>(pipeline_rank)],
                               pipeline_rank, stride);
}

/// Whether this process takes the results of a step from `rank`; `one` has them where the process
/// has all ranks.
bool TrainerState::IsTaken(int64_t rank, int64_t one) const {
  return !ranks.is_one_process() || rank == one;
}

Result<std::vector<BatchTensors>> TrainerState::TakeBatches() {
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
double TrainerState::Rate(double lr) const {
  return LearningRate(config, steps_done - first_scheduled_step, lr);
}

UpdateRates TrainerState::Rates() const {
  UpdateRates rates{.lr = Rate(config.optimizer.lr), .groups = {}};
  for (const double lr : GroupLearningRates(config.optimizer))
    rates.groups.push_back(Rate(lr));
  return rates;
}

Result<double> TrainerState::RunGraphs() {
  STRATA_TRY(const std::vector<BatchTensors> batches, TakeBatches());
  double loss = 0.0;
  std::vector<at::Tensor> spans(schedule ? actions.size() : 0);
  STRATA_RETURN_IF_ERROR(ranks.ForEach([&](int64_t rank, RankTraining& training) -> Status {
    if (draws_random) SeedStep(config.seed, steps_done);
    std::vector<RankTraining::BatchInputs> parts;
    for (const BatchTensors& batch : batches) {
      STRATA_TRY(RankTraining::BatchInputs part, ranks.PartOf(batch, rank));
      parts.push_back(std::move(part));
    }
    if (schedule) training.pipeline()->Measure(measures);
    STRATA_TRY(const double of_rank, training.RunStep(parts));
    if (schedule && measures) CollectSpans(rank, *training.pipeline(), spans);
    const double shared = FromLossRank(rank, {of_rank})[0];
    if (IsTaken(rank, loss_rank)) loss = shared;
    return Ok();
  }));
  KeepMeasured(spans);
  return loss;
}

/// Puts begins and ends of the actions of the first rank of each stage, `[actions, 2]`, where
/// rank 0 is. Throws as RankTeam::Receive.
void TrainerState::CollectSpans(int64_t rank, const PipelineRank& pipeline,
                                std::vector<at::Tensor>& spans) const {
  const int64_t stride = config.parallelism.stage_mesh.num_ranks();
  if (rank % stride != 0) return;
  const std::string key = "actions";
  std::vector<int64_t> times;
  for (const PipelineRank::Span& span : pipeline.spans())
    times.insert(times.end(), {span.begin_ns, span.end_ns});
  const at::Tensor own = at::tensor(times, at::kLong);
  if (ranks.is_one_process() || rank == 0) spans[static_cast<size_t>(rank / stride)] = own;
  if (ranks.is_one_process()) return;
  if (rank != 0) return RankTeam::Send(0, key, {own});
  for (size_t other = 1; other < spans.size(); ++other)
    spans[other] = RankTeam::Receive(static_cast<int64_t>(other) * stride, key)[0];
}

void TrainerState::KeepMeasured(const std::vector<at::Tensor>& spans) {
  measured.clear();
  if (!std::exchange(measures, false) || spans.empty() || !ranks.has_first_rank()) return;
  for (size_t rank = 0; rank < spans.size(); ++rank) {
    const int64_t* times = spans[rank].const_data_ptr<int64_t>();
    for (const Action& action : actions[rank]) {
      measured.push_back({.rank = static_cast<int64_t>(rank),
                          .action = action,
                          .begin = static_cast<double>(times[0]),
                          .end = static_cast<double>(times[1])});
      times += 2;
    }
  }
}

/// What the last stage of a pipeline knows, on every rank; without a pipeline, or where all ranks
/// are of this process, `of_rank`. Throws as RankTeam::Receive.
std::vector<double> TrainerState::FromLossRank(int64_t rank, std::vector<double> of_rank) const {
  if (!schedule || ranks.is_one_process()) return of_rank;
  const std::string key = "loss";
  if (rank == loss_rank) {
    const at::Tensor values = at::tensor(of_rank, at::kDouble);
    for (int64_t other = 0; other < config.parallelism.mesh.num_ranks(); ++other)
      if (other != rank) RankTeam::Send(other, key, {values});
    return of_rank;
  }
  const at::Tensor values = RankTeam::Receive(loss_rank, key)[0];
  const double* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

Result<double> TrainerState::RunOptimizer() {
  const UpdateRates rates = Rates();
  double norm = 0.0;
  STRATA_RETURN_IF_ERROR(ranks.ForEach([&](int64_t rank, RankTraining& training) -> Status {
    STRATA_TRY(const double of_rank, training.Update(rates));
    if (IsTaken(rank, 0)) norm = of_rank;
    return Ok();
  }));
  return norm;
}

Result<std::vector<double>> TrainerState::ValidateOn(std::span<const BatchTensors> batches) {
  std::vector<double> sums;
  STRATA_RETURN_IF_ERROR(ranks.ForEach([&](int64_t rank, RankTraining& training) -> Status {
    std::vector<RankTraining::BatchInputs> parts;
    for (const BatchTensors& batch : batches) {
      STRATA_TRY(RankTraining::BatchInputs part, ranks.PartOf(batch, rank));
      parts.push_back(std::move(part));
    }
    STRATA_TRY(const auto of_batches, training.Validate(parts));
    std::vector<double> of_rank;
    for (const auto& [loss, labels] : of_batches)
      of_rank.insert(of_rank.end(), {loss, labels});
    std::vector<double> shared = FromLossRank(rank, std::move(of_rank));
    if (IsTaken(rank, loss_rank)) sums = std::move(shared);
    return Ok();
  }));
  return sums;
}

Result<std::vector<BatchTensors>> TrainerState::TakeForValidation(int64_t most) {
  std::vector<BatchTensors> batches;
  while (std::ssize(batches) < most) {
    STRATA_TRY(const std::optional<Batch> batch, validation->Next());
    if (!batch) break;
    batches.push_back(ToTensors(config, *batch, 0, place()));
    batches.back().valid_labels = at::Tensor();
  }
  return batches;
}

Result<StepReport> TrainerState::RunAndReport(const std::function<Result<double>()>& loss,
                                              const std::function<Result<double>()>& update) {
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

Status TrainerState::CheckFinite(std::string_view what, double value) const {
  if (!config.finite_check || std::isfinite(value)) return Ok();
  return Error("{} is {}: step {}: lower optimizer.lr, or look at the data of this step", what,
               std::isnan(value) ? "nan" : "infinite", steps_done + 1);
}

}  // namespace strata

#include "runtime/train/trainer.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/config/course.h"
#include "runtime/files/tensor_io.h"
#include "runtime/ranks/sharding.h"
#include "runtime/trace/scope.h"
#include "runtime/train/rank_training.h"
#include "runtime/train/trainer_state.h"
#include "runtime/train/training_state.h"

namespace strata {

using at::Tensor;

namespace {

/// The plans of one rank; ranks share graphs.
void AddExecuted(const std::vector<const Plan*>& plans, StepReport& report) {
  for (const Plan* plan : plans) {
    const bool is_known = std::ranges::find(report.executed, plan->graph,
                                            &StepReport::Executed::graph) != report.executed.end();
    if (!is_known)
      report.executed.push_back({.graph = plan->graph, .fingerprint = plan->graph_fingerprint});
  }
}

/// What the graphs of all ranks read, from what each rank kept: `lower` wrote the graphs.
Result<NamedTensors> WholeInputs(const Module& module, const Mesh& mesh,
                                 std::span<const std::unique_ptr<RankTraining>> ranks) {
  NamedTensors whole;
  for (const GraphId id : module.programs()) {
    const Graph& graph = module.graph(id);
    STRATA_TRY(const std::vector<Sharding> shardings, InputShardings(graph, mesh));
    const std::vector<NodeId> placeholders = graph.placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const std::string name = InputName(graph, placeholders[i]);
      if (whole.contains(name)) continue;
      std::vector<Tensor> parts;
      for (const std::unique_ptr<RankTraining>& rank : ranks) {
        const NamedTensors& kept = rank->graphs().kept_inputs();
        if (const auto part = kept.find(name); part != kept.end()) parts.push_back(part->second);
      }
      if (parts.size() == ranks.size()) whole.emplace(name, shardings[i].Gather(parts));
    }
  }
  return whole;
}

}  // namespace

Trainer::Trainer(std::unique_ptr<TrainerState> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Create(TrainSetup setup) {
  STRATA_TRY(std::unique_ptr<TrainerState> state, TrainerState::Make(std::move(setup)));
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
  for (const std::unique_ptr<RankTraining>& rank : state_->ranks.all())
    rank->graphs().EndStep();
  for (const std::unique_ptr<RankTraining>& rank : state_->programs())
    AddExecuted(rank->graphs().StepPlans(), report);
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

Status Trainer::Validate(StepReport& report) {
  STRATA_CHECK(state_->validation);
  const ValidatorConfig& validator = state_->config.validator;
  STRATA_RETURN_IF_ERROR(state_->validation->Rewind());
  double sum = 0.0, labels = 0.0;
  const int64_t together = state_->schedule ? state_->config.parallelism.pipeline.microbatches : 1;
  for (int64_t done = 0; validator.steps < 0 || done < validator.steps; done += together) {
    const int64_t left = validator.steps < 0 ? together : validator.steps - done;
    STRATA_TRY(const std::vector<BatchTensors> batches,
               state_->TakeForValidation(std::min(together, left)));
    if (batches.empty()) break;
    STRATA_TRY(const std::vector<double> of_batches, state_->ValidateOn(batches));
    for (size_t i = 0; i < of_batches.size(); i += 2) {
      sum += of_batches[i];
      labels += of_batches[i + 1];
    }
  }
  if (labels == 0.0) {
    return Error("no labels to validate on: {}: give a file that fills a batch",
                 fmt::join(validator.dataset_path, ", "));
  }
  const double mean = sum / labels;
  report.metrics.validation_loss =
      state_->config.dtype == Precision::kFloat64 ? mean : static_cast<float>(mean);
  for (const std::unique_ptr<RankTraining>& rank : state_->programs())
    AddExecuted(rank->graphs().ValidationPlans(), report);
  return Ok();
}

void Trainer::ProfileNext(bool values) {
  state_->measures = true;
  for (const std::unique_ptr<RankTraining>& rank : state_->ranks.all())
    rank->graphs().Profile(values);
}

std::vector<GraphProfile> Trainer::Profiles() const {
  std::vector<GraphProfile> profiles;
  const auto& ranks = state_->ranks.all();
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (GraphProfile& profile : ranks[i]->graphs().Profiles()) {
      profile.rank = static_cast<int32_t>(i);
      profiles.push_back(std::move(profile));
    }
  }
  return profiles;
}

const std::vector<MeasuredAction>& Trainer::MeasuredActions() const {
  return state_->measured;
}

void Trainer::KeepInputs() {
  for (const std::unique_ptr<RankTraining>& rank : state_->ranks.all())
    rank->graphs().KeepInputs();
}

Status Trainer::SaveInputs(const std::string& path) const {
  NamedTensors kept;
  if (state_->ranks.is_distributed()) {
    STRATA_TRY(kept, WholeInputs(module(), config().parallelism.mesh, state_->ranks.all()));
  } else {
    kept = state_->first().graphs().kept_inputs();
  }
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

void Trainer::KeepGradients(bool keep) {
  state_->ranks.KeepGradients(keep);
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

bool Trainer::has_gradients() const {
  return !state_->first().gradients().empty();
}

std::vector<TensorView> Trainer::Gradients() const {
  STRATA_CHECK(has_gradients(), "gradients were not kept");
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

#include "runtime/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/strides.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/aten/threads.h"
#include "runtime/config/course.h"
#include "runtime/files/tensor_io.h"
#include "runtime/models/model.h"
#include "runtime/plan/device/cuda_loader.h"
#include "runtime/trace/scope.h"
#include "runtime/train/batch_feed.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/param_groups.h"
#include "runtime/train/programs.h"
#include "runtime/train/schedule.h"
#include "runtime/train/training_state.h"

namespace strata {
namespace {

using at::Tensor;

/// As the next graph reads a gradient. Along a size of 1 a contiguous tensor may have any stride.
Tensor RowAfterRow(const Tensor& tensor) {
  const Tensor rows = tensor.contiguous();
  const c10::DimVector strides = c10::contiguous_strides(rows.sizes());
  return rows.strides() == at::IntArrayRef(strides) ? rows : rows.as_strided(rows.sizes(), strides);
}

c10::Device PlaceOf(const Device* device) {
  return c10::Device(device != nullptr ? device->traits().name : "cpu");
}

/// The passes of a pipeline that the configuration does not switch off. Errors: those of the text,
/// a name that no pass has, a capture of device graphs where there shall be none.
Result<std::vector<std::unique_ptr<Pass>>> PassesOf(const TrainConfig& config,
                                                    std::string_view text) {
  const PassRegistry& registry = AllPasses();
  const std::vector<std::string>& disabled = config.compile.disable_passes;
  for (const std::string& name : disabled) {
    if (registry.Find(name) != nullptr) continue;
    std::vector<std::string> names;
    for (const PassRegistry::Entry& entry : registry.entries())
      names.push_back(entry.name);
    return Error("no pass '{}': compile.disable_passes: name some of {}{}", name,
                 fmt::join(names, ", "), DidYouMean(name, names));
  }
  STRATA_TRY(std::vector<std::unique_ptr<Pass>> passes, ParsePipeline(text, registry));
  if (!config.compile.enable_passes) passes.clear();
  std::erase_if(passes, [&](const std::unique_ptr<Pass>& pass) {
    return std::ranges::find(disabled, pass->name()) != disabled.end();
  });
  const auto is_capture = [](const std::unique_ptr<Pass>& pass) {
    return pass->name() == "cuda-graph";
  };
  if (config.disable_cuda_graphs && std::ranges::any_of(passes, is_capture)) {
    return Error(
        "pass and configuration contradict each other: cuda-graph: training.disable_cuda_graphs is "
        "true, take one of them out");
  }
  return passes;
}

/// Loss and gradients of one batch of the step.
using RunBatch = std::function<Result<std::vector<Tensor>>(const BatchTensors&)>;
/// Adds the second list to the first.
using AddUp = std::function<Status(std::span<const Tensor>, std::span<const Tensor>)>;

}  // namespace

struct Trainer::State {
  State(TrainSetup setup, TrainSpec train_spec, std::vector<std::unique_ptr<Pass>> pipeline_passes,
        const std::optional<InitialWeights>& given)
      : spec(std::move(train_spec)),
        device(std::move(setup.device)),
        feed(config, std::move(setup.data), PlaceOf(device.get())),
        validation(std::move(setup.validation)),
        training(spec, given, PlaceOf(device.get())),
        threads(setup.threads),
        passes(std::move(pipeline_passes)),
        graphs(setup.plan, device.get()) {
    for (const std::unique_ptr<Pass>& pass : passes)
      pipeline += fmt::format("{}{}", pipeline.empty() ? "" : ",", pass->Text());
  }

  TrainSpec spec;
  const TrainConfig& config = spec.config;
  std::unique_ptr<Device> device;  // before what may hold its memory and graphs
  BatchFeed feed;
  std::unique_ptr<DataSource> validation;
  TrainingState training;
  int threads;
  std::vector<std::unique_ptr<Pass>> passes;  // until they ran
  std::string pipeline;                       // their text
  TrainingGraphs graphs;

  std::vector<Tensor> gradients, tokens_per_expert;  // of the last step
  bool keep_gradients = false;
  std::vector<Tensor> kept_gradients;  // of the last step, before clipping, if asked for
  int64_t steps_done = 0;
  int64_t tokens_seen = 0;
  int64_t step_tokens = 0;  // of the last step
  int64_t first_scheduled_step = 0;

  DeviceTraits Target() const { return device ? device->traits() : DeviceTraits(); }

  std::vector<Tensor> StepArguments(const BatchTensors& batch) const {
    std::vector<Tensor> arguments = training.parameters;
    arguments.insert(arguments.end(), training.buffers.begin(), training.buffers.end());
    arguments.push_back(training.rope_table);
    for (Tensor& input : batch.Inputs())
      arguments.push_back(std::move(input));
    return arguments;
  }

  std::vector<Tensor> Sums() const {
    std::vector<Tensor> sums = gradients;
    sums.insert(sums.end(), tokens_per_expert.begin(), tokens_per_expert.end());
    return sums;
  }

  /// Keeps what the optimizer needs of a step; returns the loss.
  Result<float> RunStep(const RunBatch& run, const AddUp& add) {
    STRATA_TRY(const std::vector<BatchTensors> batches, feed.Take(steps_done + 1));
    // Their memory serves this step's.
    gradients.clear();
    tokens_per_expert.clear();
    training.ReleaseViews();
    float loss = 0.0F;
    step_tokens = 0;
    for (size_t i = 0; i < batches.size(); ++i) {
      STRATA_TRY(const std::vector<Tensor> outputs, run(batches[i]));
      step_tokens += batches[i].tokens.numel();
      loss += outputs[0].item<float>();
      // Memory that the next batch wants cannot hold sums.
      const bool is_lent = i == 0 && batches.size() > 1 && graphs.LendsOutputs(kStepGraph);
      const auto take = [&](const Tensor& tensor) {
        return RowAfterRow(is_lent ? tensor.clone(at::MemoryFormat::Contiguous) : tensor);
      };
      std::vector<Tensor> batch_gradients, batch_counts;
      for (size_t p = 1; p <= training.parameters.size(); ++p)
        batch_gradients.push_back(take(outputs[p]));
      for (size_t p = outputs.size() - training.buffers.size(); p < outputs.size(); ++p)
        batch_counts.push_back(take(outputs[p]));
      if (i == 0) {
        gradients = std::move(batch_gradients);
        tokens_per_expert = std::move(batch_counts);
        continue;
      }
      batch_gradients.insert(batch_gradients.end(), batch_counts.begin(), batch_counts.end());
      STRATA_RETURN_IF_ERROR(add(Sums(), batch_gradients));
    }
    training.optimizer.lr.fill_(Rate(config.optimizer.lr));
    const std::vector<double> rates = GroupLearningRates(config.optimizer);
    for (size_t i = 0; i < rates.size(); ++i)
      training.optimizer.group_lr[i].fill_(Rate(rates[i]));
    kept_gradients.clear();
    if (std::exchange(keep_gradients, false) && device) {
      for (const Tensor& gradient : gradients)
        kept_gradients.push_back(gradient.to(at::kCPU, gradient.scalar_type(),
                                             /*non_blocking=*/false, /*copy=*/true));
    }
    return loss;
  }

  /// Of the next update, for parameters whose rate is `lr`.
  double Rate(double lr) const {
    return LearningRate(config, steps_done - first_scheduled_step, lr);
  }

  Result<float> RunGraphs() {
    return RunStep(
        [&](const BatchTensors& batch) { return graphs.Run(kStepGraph, StepArguments(batch)); },
        [&](std::span<const Tensor> sums, std::span<const Tensor> more) -> Status {
          std::vector<Tensor> arguments(sums.begin(), sums.end());
          arguments.insert(arguments.end(), more.begin(), more.end());
          STRATA_TRY(const std::vector<Tensor> ignored, graphs.Run(kAccumulateGraph, arguments));
          return Ok();
        });
  }

  Result<float> RunOptimizer() {
    OptimizerState& optimizer = training.optimizer;
    std::vector<Tensor> arguments = training.parameters;
    for (const std::vector<Tensor>* group : {&gradients, &optimizer.exp_avg, &optimizer.exp_avg_sq,
                                             &training.buffers, &tokens_per_expert}) {
      arguments.insert(arguments.end(), group->begin(), group->end());
    }
    arguments.insert(arguments.end(), {optimizer.step, optimizer.lr});
    arguments.insert(arguments.end(), optimizer.group_lr.begin(), optimizer.group_lr.end());
    STRATA_TRY(const std::vector<Tensor> outputs, graphs.Run(kOptimizerGraph, arguments));
    return outputs[0].item<float>();
  }

  Result<float> RunEagerly() {
    std::vector<Tensor> trained;
    for (const Tensor& parameter : training.parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const ModelTensors model{
        .parameters = trained, .buffers = training.buffers, .rope_table = training.rope_table};
    return RunStep(
        [&](const BatchTensors& batch) -> Result<std::vector<Tensor>> {
          return LossAndGradients(spec, model, batch);
        },
        [&](std::span<const Tensor> sums, std::span<const Tensor> more) -> Status {
          Accumulate(spec, sums, more);
          return Ok();
        });
  }

  Result<float> RunOptimizerEagerly() {
    return OptimizerStep(spec, training.model(), gradients, tokens_per_expert,
                         training.optimizer)[0]
        .item<float>();
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

  Status CheckFinite(std::string_view what, float value) const {
    if (!config.finite_check || std::isfinite(value)) return Ok();
    return Error("{} is {}: step {}: lower optimizer.lr, or look at the data of this step", what,
                 std::isnan(value) ? "nan" : "infinite", steps_done + 1);
  }
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Create(TrainSetup setup) {
  const TrainConfig& config = setup.config;
  if (const Mesh& mesh = config.parallelism.mesh; mesh.num_ranks() > 1) {
    return Error(ErrorCode::kUnsupported,
                 "training runs on one rank: parallelism: the degrees make {} ({}), take 1",
                 mesh.num_ranks(), mesh.Text());
  }
  if (setup.device == nullptr && config.device == DeviceKind::kCuda) {
    STRATA_TRY(setup.device, OpenCuda({.deterministic = config.deterministic,
                                       .warn_only = config.deterministic_warn_only,
                                       .allow_tf32 = config.allow_tf32}));
  }
  TrainSpec spec(config);
  const ModelSpecs& specs = spec.model;
  std::optional<InitialWeights> given;
  if (setup.init) {
    std::vector<ParameterSpec> stored = specs.parameters;
    stored.insert(stored.end(), specs.buffers.begin(), specs.buffers.end());
    STRATA_TRY(given, InitialWeights::Match(*std::move(setup.init), config, stored));
  }
  // Errors are reported before any initial value is computed.
  if (auto groups = AdamWOfParameters(config.optimizer, specs.parameters); !groups) {
    return std::move(groups).error();
  }
  STRATA_TRY(std::vector<std::unique_ptr<Pass>> passes, PassesOf(config, setup.passes));
  SetThreads(setup.threads);
  return std::unique_ptr<Trainer>(new Trainer(
      std::make_unique<State>(std::move(setup), std::move(spec), std::move(passes), given)));
}

Status Trainer::Compile(const CompileWatch& watch) {
  return state_->graphs.Compile(state_->spec, std::exchange(state_->passes, {}), watch);
}

Result<bool> Trainer::HasNext() {
  if (state_->steps_done == state_->config.steps) return false;
  return state_->feed.HasNext();
}

Result<StepReport> Trainer::Step() {
  STRATA_TRY(StepReport report, state_->RunAndReport([&] { return state_->RunGraphs(); },
                                                     [&] { return state_->RunOptimizer(); }));
  state_->graphs.EndStep();
  for (const Plan* plan : state_->graphs.StepPlans())
    report.executed.push_back({.graph = plan->graph, .fingerprint = plan->graph_fingerprint});
  return report;
}

Result<StepReport> Trainer::StepEagerly() {
  const TargetScope target(state_->Target());
  return state_->RunAndReport([&] { return state_->RunEagerly(); },
                              [&] { return state_->RunOptimizerEagerly(); });
}

int64_t Trainer::steps_done() const {
  return state_->steps_done;
}

bool Trainer::IsValidationStep() const {
  const ValidatorConfig& validator = state_->config.validator;
  const int64_t step = state_->steps_done;
  return validator.enable && step > 0 && (step == 1 || step % validator.freq == 0);
}

Result<float> Trainer::Validate() {
  STRATA_CHECK(state_->validation);
  const ValidatorConfig& validator = state_->config.validator;
  STRATA_RETURN_IF_ERROR(state_->validation->Rewind());
  double sum = 0.0, labels = 0.0;
  for (int64_t step = 0; validator.steps < 0 || step < validator.steps; ++step) {
    STRATA_TRY(const std::optional<Batch> batch, state_->validation->Next());
    if (!batch) break;
    BatchTensors tensors = ToTensors(state_->config, *batch, 0, PlaceOf(state_->device.get()));
    tensors.valid_labels = Tensor();
    STRATA_TRY(const std::vector<Tensor> outputs,
               state_->graphs.Run(kValidateGraph, state_->StepArguments(tensors)));
    sum += outputs[0].item<float>();
    labels += outputs[1].item<float>();
  }
  if (labels == 0.0) {
    return Error("no labels to validate on: {}: give a file that fills a batch",
                 fmt::join(validator.dataset_path, ", "));
  }
  return static_cast<float>(sum / labels);
}

void Trainer::ProfileNext(bool values) {
  state_->graphs.Profile(values);
}

std::vector<GraphProfile> Trainer::Profiles() const {
  return state_->graphs.Profiles();
}

void Trainer::KeepInputs() {
  state_->graphs.KeepInputs();
}

Status Trainer::SaveInputs(const std::string& path) const {
  const NamedTensors& kept = state_->graphs.kept_inputs();
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
  return state_->training.OptimizerViews();
}

Result<std::vector<std::string>> Trainer::Restore(const Checkpoint& checkpoint) {
  const CheckpointConfig::Exclude& exclude = state_->config.checkpoint.exclude_from_loading;
  STRATA_RETURN_IF_ERROR(state_->training.Restore(checkpoint, exclude));
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
  return state_->graphs.Kernels();
}

void Trainer::KeepGradients() {
  state_->keep_gradients = true;
}

std::vector<TensorView> Trainer::Parameters() const {
  return state_->training.ModelViews();
}

std::vector<TensorView> Trainer::Gradients() const {
  const bool has_copies = !state_->kept_gradients.empty();
  return state_->training.ViewsByParameter(has_copies ? state_->kept_gradients : state_->gradients);
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
  return state_->graphs.planned_bytes();
}

std::optional<int64_t> Trainer::planned_bytes_at_most() const {
  return state_->graphs.planned_bytes_at_most();
}

const std::vector<std::string>& Trainer::warnings() const {
  return state_->graphs.warnings();
}

std::string Trainer::DataWarning() const {
  return state_->feed.Warning();
}

const Module& Trainer::module() const {
  return state_->graphs.module();
}

}  // namespace strata

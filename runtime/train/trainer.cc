#include "runtime/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <fmt/format.h>

#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/models/layers.h"
#include "runtime/models/model.h"
#include "runtime/models/scope.h"
#include "runtime/plan/cuda_loader.h"
#include "runtime/torch/executor.h"
#include "runtime/torch/sized_executor.h"
#include "runtime/torch/tensor_io.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/param_groups.h"
#include "runtime/train/parameters.h"
#include "runtime/train/programs.h"
#include "runtime/train/schedule.h"

namespace strata {
namespace {

using at::Tensor;

Tensor InitialValue(const ParameterSpec& spec, uint64_t seed,
                    const std::optional<InitialWeights>& given) {
  Tensor tensor = at::empty(spec.shape, at::kFloat);
  const std::span<float> values(tensor.mutable_data_ptr<float>(),
                                static_cast<size_t>(tensor.numel()));
  if (given) {
    given->Read(spec, values);
  } else {
    InitializeParameter(spec, seed, values);
  }
  return tensor;
}

/// Without a compiler, fused nodes run as the operators that they were.
Result<Executor> MakeExecutor(const Graph& graph, const SymbolSizes& sizes,
                              const Constants& constants, PlanOptions options,
                              std::vector<std::string>& warnings, Device* device,
                              const ScratchMemory& scratch) {
  // Other options lay out the memory of the CPU.
  if (device != nullptr) options = {.unfuse = options.unfuse};
  STRATA_TRY(Plan plan, Lower(graph, options, sizes));
  const bool has_kernels = !plan.kernels.empty();
  auto executor = Executor::Bind(std::move(plan), constants, scratch, device);
  if (executor || !has_kernels) return executor;
  warnings.push_back(fmt::format("graph {} runs without fused kernels: {}", graph.name_text(),
                                 executor.error().message()));
  options.unfuse = true;
  STRATA_TRY(plan, Lower(graph, options, sizes));
  return Executor::Bind(std::move(plan), constants, scratch, device);
}

TensorView ViewOf(std::string name, const Tensor& tensor) {
  return {.name = std::move(name),
          .dtype = TensorDtype::kF32,
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

/// Overwrites a tensor with the stored one of the same name.
Status ReadInto(const TensorFiles& files, const TensorView& target, Tensor& tensor) {
  const TensorView* stored = files.Find(target.name);
  if (stored == nullptr || stored->shape != target.shape || stored->dtype != target.dtype) {
    return Error("tensors do not fit the model: {}: {}; resume with the configuration of the run",
                 files.path(),
                 stored == nullptr ? fmt::format("{} is missing", target.name)
                                   : fmt::format("{} is {}, not {}", target.name,
                                                 DescribeType(stored->dtype, stored->shape),
                                                 DescribeType(target.dtype, target.shape)));
  }
  const Tensor host = tensor.is_cpu() ? tensor : at::empty(tensor.sizes(), tensor.scalar_type());
  std::memcpy(host.mutable_data_ptr(), stored->bytes.data(), stored->bytes.size());
  if (!host.is_same(tensor)) tensor.copy_(host);
  return Ok();
}

Status ReadAll(const TensorFiles& files, const std::vector<TensorView>& targets,
               std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    STRATA_RETURN_IF_ERROR(ReadInto(files, targets[i], tensors[i]));
  return Ok();
}

constexpr std::string_view kExpAvg = "state.{}.exp_avg";
constexpr std::string_view kExpAvgSq = "state.{}.exp_avg_sq";
constexpr const char* kStepName = "state.step";

}  // namespace

struct Trainer::State {
  State(const TrainConfig& config, std::unique_ptr<DataSource> data, std::unique_ptr<Device> device)
      : config(config), device(std::move(device)), data(std::move(data)), specs(SpecsOf(config)) {}

  TrainConfig config;
  std::unique_ptr<Device> device;  // first: what follows may hold its memory and graphs
  std::unique_ptr<DataSource> data;
  ModelSpecs specs;
  std::vector<std::unique_ptr<Pass>> passes;
  PlanOptions plan;
  std::vector<std::string> warnings;
  Module module;
  Constants constants;
  std::optional<SizedExecutor> step, accumulate, optimizer, validate;

  std::vector<Tensor> parameters, buffers;
  std::vector<Tensor> gradients, tokens_per_expert;  // of the last step
  OptimizerState optimizer_state;
  Tensor rope_table;
  int64_t steps_done = 0;
  int64_t tokens_seen = 0;
  int64_t step_tokens = 0;  // of the last step
  int64_t first_scheduled_step = 0;
  std::unique_ptr<DataSource> validation;
  std::vector<BatchTensors> next;  // of the next step, once asked for
  std::string next_position;       // in the data, of `next`
  bool keep_inputs = false, profile = false, profile_values = false;
  std::map<std::string, NodeProfiler> profilers;  // by graph
  NamedTensors kept_inputs;
  bool keep_gradients = false;
  std::vector<Tensor> kept_gradients;       // of the last step, before clipping, if asked for
  mutable std::vector<Tensor> host_copies;  // of a GPU's tensors that were asked for

  DeviceTraits Target() const { return device ? device->traits() : DeviceTraits(); }

  Tensor OnDevice(const Tensor& tensor) const {
    return device ? tensor.to(c10::Device(device->traits().name)) : tensor;
  }

  std::vector<TensorView> Named(const std::vector<ParameterSpec>& tensor_specs,
                                const std::vector<Tensor>& tensors,
                                std::string_view format = "{}") const {
    std::vector<TensorView> views;
    for (size_t i = 0; i < tensors.size(); ++i) {
      views.push_back(
          ViewOnHost(fmt::format(fmt::runtime(format), tensor_specs[i].name), tensors[i]));
    }
    return views;
  }

  TensorView ViewOnHost(std::string name, const Tensor& tensor) const {
    if (tensor.is_cpu()) return ViewOf(std::move(name), tensor);
    host_copies.push_back(tensor.cpu());
    return ViewOf(std::move(name), host_copies.back());
  }

  /// REQUIRES: the state stays where it is.
  Result<SizedExecutor> MakeSizedExecutor(std::string_view graph,
                                          const ScratchMemory& scratch = {}) {
    return SizedExecutor::Create(*module.FindGraph(graph),
                                 [this, graph, scratch](const SymbolSizes& sizes) {
                                   return MakeExecutor(*module.FindGraph(graph), sizes, constants,
                                                       plan, warnings, device.get(), scratch);
                                 });
  }

  /// Reads the batches of the next step. False: the data end before.
  Result<bool> Fetch() {
    if (!next.empty()) return true;
    next_position = data->Position();
    std::vector<Batch> batches;
    int64_t valid = 0;
    while (std::ssize(batches) < config.accumulation_steps) {
      STRATA_TRY(std::optional<Batch> batch, data->Next());
      if (!batch) return false;
      valid += std::ranges::count_if(batch->labels, [](int64_t l) { return l != kIgnoredLabel; });
      batches.push_back(*std::move(batch));
    }
    for (const Batch& batch : batches)
      next.push_back(ToTensors(batch, valid));
    return true;
  }

  BatchTensors ToTensors(const Batch& batch, int64_t valid_labels) const {
    const auto ids = [&](const std::vector<int64_t>& values) {
      Tensor tensor = at::empty({batch.rows, batch.seq_len()}, at::kLong);
      std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(int64_t));
      return OnDevice(tensor);
    };
    BatchTensors tensors{.tokens = ids(batch.tokens), .labels = ids(batch.labels)};
    if (HasPositions(config)) tensors.positions = ids(batch.positions);
    if (HasLabelCount(config)) {
      tensors.valid_labels =
          OnDevice(at::scalar_tensor(static_cast<double>(valid_labels), at::kFloat));
    }
    return tensors;
  }

  /// The batches of this step.
  Result<std::vector<BatchTensors>> Take() {
    STRATA_TRY(const bool has_data, Fetch());
    if (!has_data) {
      return Error("the data end before step {}: {}: train fewer steps, or let them repeat",
                   steps_done + 1, config.dataloader.dataset_path);
    }
    return std::exchange(next, {});
  }

  std::vector<Tensor> StepArguments(const BatchTensors& batch) const {
    std::vector<Tensor> arguments = parameters;
    arguments.insert(arguments.end(), buffers.begin(), buffers.end());
    arguments.push_back(rope_table);
    for (Tensor& input : batch.Inputs())
      arguments.push_back(std::move(input));
    return arguments;
  }

  std::vector<Tensor> Sums() const {
    std::vector<Tensor> sums = gradients;
    sums.insert(sums.end(), tokens_per_expert.begin(), tokens_per_expert.end());
    return sums;
  }

  /// Runs a graph of the step.
  Result<std::vector<Tensor>> Run(SizedExecutor& executor, const std::vector<Tensor>& arguments) {
    if (keep_inputs) KeepInputs(executor.plan().graph, arguments);
    if (!profile) return executor.Run(arguments);
    NodeProfiler& profiler = profilers[executor.plan().graph];
    profiler.BeginRun(profile_values);
    return executor.Run(arguments, &profiler);
  }

  void KeepInputs(const std::string& name, const std::vector<Tensor>& arguments) {
    const Graph& graph = *module.FindGraph(name);
    size_t next_argument = 0;
    for (const NodeId node : graph.nodes()) {
      if (graph.node(node).kind != NodeKind::kPlaceholder) continue;
      // What several batches or graphs read is kept as the first of them read it.
      const Tensor& argument = arguments[next_argument];
      kept_inputs.try_emplace(InputName(graph, node),
                              argument.is_cpu() ? argument.clone() : argument.cpu());
      ++next_argument;
    }
  }

  /// Loss and gradients of one batch of the step.
  using RunBatch = std::function<Result<std::vector<Tensor>>(const BatchTensors&)>;
  /// Adds the second list to the first.
  using AddUp = std::function<Status(std::span<const Tensor>, std::span<const Tensor>)>;

  /// Keeps what the optimizer needs of a step; returns the loss.
  Result<float> RunStep(const RunBatch& run, const AddUp& add) {
    STRATA_TRY(const std::vector<BatchTensors> batches, Take());
    // Their memory serves this step's.
    gradients.clear();
    tokens_per_expert.clear();
    host_copies.clear();
    if (optimizer) optimizer->ReleaseInputs();
    float loss = 0.0F;
    step_tokens = 0;
    for (size_t i = 0; i < batches.size(); ++i) {
      STRATA_TRY(const std::vector<Tensor> outputs, run(batches[i]));
      step_tokens += batches[i].tokens.numel();
      loss += outputs[0].item<float>();
      // What the next batch overwrites cannot hold sums.
      const bool is_lent = i == 0 && batches.size() > 1 && step && step->reuses_outputs();
      const auto take = [&](const Tensor& tensor) {
        return is_lent ? tensor.clone(at::MemoryFormat::Contiguous) : tensor.contiguous();
      };
      std::vector<Tensor> batch_gradients, batch_counts;
      for (size_t p = 1; p <= parameters.size(); ++p)
        batch_gradients.push_back(take(outputs[p]));
      for (size_t p = outputs.size() - buffers.size(); p < outputs.size(); ++p)
        batch_counts.push_back(take(outputs[p]));
      if (i == 0) {
        gradients = std::move(batch_gradients);
        tokens_per_expert = std::move(batch_counts);
        continue;
      }
      batch_gradients.insert(batch_gradients.end(), batch_counts.begin(), batch_counts.end());
      STRATA_RETURN_IF_ERROR(add(Sums(), batch_gradients));
    }
    optimizer_state.lr.fill_(Rate(config.optimizer.lr));
    const std::vector<double> rates = GroupLearningRates(config.optimizer);
    for (size_t i = 0; i < rates.size(); ++i)
      optimizer_state.group_lr[i].fill_(Rate(rates[i]));
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
    return RunStep([&](const BatchTensors& batch) { return Run(*step, StepArguments(batch)); },
                   [&](std::span<const Tensor> sums, std::span<const Tensor> more) -> Status {
                     std::vector<Tensor> arguments(sums.begin(), sums.end());
                     arguments.insert(arguments.end(), more.begin(), more.end());
                     STRATA_TRY(const std::vector<Tensor> ignored, Run(*accumulate, arguments));
                     return Ok();
                   });
  }

  Result<float> RunOptimizer() {
    std::vector<Tensor> arguments = parameters;
    for (const std::vector<Tensor>* group :
         {&gradients, &optimizer_state.exp_avg, &optimizer_state.exp_avg_sq, &buffers,
          &tokens_per_expert}) {
      arguments.insert(arguments.end(), group->begin(), group->end());
    }
    arguments.insert(arguments.end(), {optimizer_state.step, optimizer_state.lr});
    arguments.insert(arguments.end(), optimizer_state.group_lr.begin(),
                     optimizer_state.group_lr.end());
    STRATA_TRY(const std::vector<Tensor> outputs, Run(*optimizer, arguments));
    return outputs[0].item<float>();
  }

  Result<float> RunEagerly() {
    std::vector<Tensor> trained;
    for (const Tensor& parameter : parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const ModelTensors model{.parameters = trained, .buffers = buffers, .rope_table = rope_table};
    return RunStep(
        [&](const BatchTensors& batch) -> Result<std::vector<Tensor>> {
          return LossAndGradients(config, model, batch);
        },
        [&](std::span<const Tensor> sums, std::span<const Tensor> more) -> Status {
          Accumulate(config, sums, more);
          return Ok();
        });
  }

  Result<float> RunOptimizerEagerly() {
    const ModelTensors model{
        .parameters = parameters, .buffers = buffers, .rope_table = rope_table};
    return OptimizerStep(config, model, gradients, tokens_per_expert, optimizer_state)[0]
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
  if (setup.device == nullptr && setup.config.device == DeviceKind::kCuda) {
    STRATA_TRY(setup.device, OpenCuda({.deterministic = setup.config.deterministic,
                                       .allow_tf32 = setup.config.allow_tf32}));
  }
  auto state =
      std::make_unique<State>(setup.config, std::move(setup.data), std::move(setup.device));
  std::optional<InitialWeights> given;
  if (setup.init) {
    std::vector<ParameterSpec> stored = state->specs.parameters;
    stored.insert(stored.end(), state->specs.buffers.begin(), state->specs.buffers.end());
    STRATA_TRY(given, InitialWeights::Match(*std::move(setup.init), state->config, stored));
  }
  // Errors are told before anything is drawn.
  if (auto groups = AdamWOfParameters(state->config.optimizer, state->specs.parameters); !groups) {
    return std::move(groups).error();
  }
  state->validation = std::move(setup.validation);
  STRATA_TRY(state->passes, ParsePipeline(setup.passes, AllPasses()));
  state->plan = setup.plan;
  at::set_num_threads(setup.threads);
  const uint64_t seed = state->config.seed;
  for (const ParameterSpec& spec : state->specs.parameters)
    state->parameters.push_back(state->OnDevice(InitialValue(spec, seed, given)));
  for (const ParameterSpec& spec : state->specs.buffers)
    state->buffers.push_back(state->OnDevice(InitialValue(spec, seed, given)));
  state->optimizer_state = InitialState(state->config, state->parameters);
  for (Tensor* scalar : {&state->optimizer_state.step, &state->optimizer_state.lr})
    *scalar = state->OnDevice(*scalar);
  for (Tensor& lr : state->optimizer_state.group_lr)
    lr = state->OnDevice(lr);
  state->rope_table = state->OnDevice(RopeTable(state->config));
  return std::unique_ptr<Trainer>(new Trainer(std::move(state)));
}

Status Trainer::Compile(const CompileWatch& watch) {
  const TargetScope target(state_->Target());
  state_->module.ReserveStableIds(watch.first_stable_id);
  STRATA_RETURN_IF_ERROR(TraceTraining(state_->config, state_->module, state_->constants));

  PassManager manager({.run_ref = watch.run_ref});
  for (std::unique_ptr<Pass>& pass : std::exchange(state_->passes, {}))
    manager.Add(std::move(pass));
  for (PassInstrumentation* watcher : watch.watchers)
    manager.Watch(*watcher);
  if (auto passed = manager.Run(state_->module); !passed) return std::move(passed).error();

  STRATA_TRY(state_->step, state_->MakeSizedExecutor(kStepGraph));
  if (state_->config.accumulation_steps > 1) {
    STRATA_TRY(state_->accumulate, state_->MakeSizedExecutor(kAccumulateGraph));
  }
  STRATA_TRY(state_->optimizer,
             state_->MakeSizedExecutor(kOptimizerGraph, state_->step->scratch()));
  if (state_->config.validator.enable) {
    STRATA_TRY(state_->validate, state_->MakeSizedExecutor(kValidateGraph));
  }
  return Ok();
}

Result<bool> Trainer::HasNext() {
  if (state_->steps_done == state_->config.steps) return false;
  return state_->Fetch();
}

Result<StepReport> Trainer::Step() {
  STRATA_CHECK(state_->optimizer);
  STRATA_TRY(StepReport report, state_->RunAndReport([&] { return state_->RunGraphs(); },
                                                     [&] { return state_->RunOptimizer(); }));
  state_->keep_inputs = false;
  state_->profile = false;
  for (const std::optional<SizedExecutor>* executor :
       {&state_->step, &state_->accumulate, &state_->optimizer}) {
    if (!*executor) continue;
    const Plan& plan = (*executor)->plan();
    report.executed.push_back({.graph = plan.graph, .fingerprint = plan.graph_fingerprint});
  }
  return report;
}

Result<float> Trainer::Validate() {
  STRATA_CHECK(state_->validate && state_->validation);
  const ValidatorConfig& validator = state_->config.validator;
  STRATA_RETURN_IF_ERROR(state_->validation->Rewind());
  double sum = 0.0, labels = 0.0;
  for (int64_t step = 0; validator.steps < 0 || step < validator.steps; ++step) {
    STRATA_TRY(const std::optional<Batch> batch, state_->validation->Next());
    if (!batch) break;
    BatchTensors tensors = state_->ToTensors(*batch, 0);
    tensors.valid_labels = Tensor();
    STRATA_TRY(const std::vector<Tensor> outputs,
               state_->validate->Run(state_->StepArguments(tensors)));
    sum += outputs[0].item<float>();
    labels += outputs[1].item<float>();
  }
  if (labels == 0.0) {
    return Error("no labels to validate on: {}: give a file that fills a batch",
                 validator.dataset_path);
  }
  return static_cast<float>(sum / labels);
}

Result<StepReport> Trainer::StepEagerly() {
  const TargetScope target(state_->Target());
  return state_->RunAndReport([&] { return state_->RunEagerly(); },
                              [&] { return state_->RunOptimizerEagerly(); });
}

void Trainer::ProfileNext(bool values) {
  state_->profile = true;
  state_->profile_values = values;
}

std::vector<Trainer::GraphProfile> Trainer::Profiles() const {
  std::vector<GraphProfile> profiles;
  for (const auto& [name, profiler] : state_->profilers) {
    const Graph& graph = *state_->module.FindGraph(name);
    GraphProfile profile{.graph = name, .fingerprint = FingerprintOf(graph), .nodes = {}};
    for (const NodeId node : graph.nodes()) {
      const auto found = profiler.nodes().find(node);
      if (found == profiler.nodes().end()) continue;
      profile.nodes.emplace_back(graph.node(node).stable_id, found->second);
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

std::vector<Trainer::GraphKernels> Trainer::Kernels() const {
  std::vector<GraphKernels> all;
  for (const std::optional<SizedExecutor>* executor :
       {&state_->step, &state_->accumulate, &state_->optimizer}) {
    if (!*executor) continue;
    std::vector<KernelAnnotation> kernels = (*executor)->annotations();
    if (!kernels.empty())
      all.push_back({.graph = (*executor)->plan().graph, .kernels = std::move(kernels)});
  }
  return all;
}

void Trainer::KeepGradients() {
  state_->keep_gradients = true;
}

void Trainer::KeepInputs() {
  state_->keep_inputs = true;
}

Status Trainer::SaveInputs(const std::string& path) const {
  const std::vector<std::pair<std::string, Tensor>> tensors(state_->kept_inputs.begin(),
                                                            state_->kept_inputs.end());
  return SaveTensors(path, tensors);
}

CheckpointInfo Trainer::Position() const {
  return {.step = state_->steps_done,
          .tokens_seen = state_->tokens_seen,
          .first_scheduled_step = state_->first_scheduled_step,
          .data_position = state_->next.empty() ? state_->data->Position() : state_->next_position};
}

std::vector<TensorView> Trainer::OptimizerTensors() const {
  const OptimizerState& optimizer = state_->optimizer_state;
  std::vector<TensorView> views =
      state_->Named(state_->specs.parameters, optimizer.exp_avg, kExpAvg);
  for (TensorView& view : state_->Named(state_->specs.parameters, optimizer.exp_avg_sq, kExpAvgSq))
    views.push_back(std::move(view));
  views.push_back(state_->ViewOnHost(kStepName, optimizer.step));
  return views;
}

Status Trainer::Restore(const Checkpoint& checkpoint) {
  if (!checkpoint.optimizer || checkpoint.info.is_hugging_face) {
    return Error(
        "checkpoint of the model alone: {}: it holds no optimizer state; start from it with --init",
        checkpoint.model.path());
  }
  OptimizerState& optimizer = state_->optimizer_state;
  const std::vector<ParameterSpec>& specs = state_->specs.parameters;
  const TensorFiles& stored = *checkpoint.optimizer;
  STRATA_RETURN_IF_ERROR(
      ReadAll(checkpoint.model, state_->Named(specs, state_->parameters), state_->parameters));
  STRATA_RETURN_IF_ERROR(ReadAll(
      checkpoint.model, state_->Named(state_->specs.buffers, state_->buffers), state_->buffers));
  const CheckpointConfig::Exclude& exclude = state_->config.checkpoint.exclude_from_loading;
  if (!exclude.optimizer) {
    STRATA_RETURN_IF_ERROR(
        ReadAll(stored, state_->Named(specs, optimizer.exp_avg, kExpAvg), optimizer.exp_avg));
    STRATA_RETURN_IF_ERROR(ReadAll(stored, state_->Named(specs, optimizer.exp_avg_sq, kExpAvgSq),
                                   optimizer.exp_avg_sq));
    STRATA_RETURN_IF_ERROR(
        ReadInto(stored, state_->ViewOnHost(kStepName, optimizer.step), optimizer.step));
  }
  if (!exclude.dataloader) {
    STRATA_RETURN_IF_ERROR(state_->data->Seek(checkpoint.info.data_position));
  }
  state_->next.clear();
  state_->steps_done = checkpoint.info.step;
  state_->first_scheduled_step =
      exclude.lr_scheduler ? checkpoint.info.step : checkpoint.info.first_scheduled_step;
  state_->tokens_seen = checkpoint.info.tokens_seen;
  return Ok();
}

bool Trainer::IsValidationStep() const {
  const ValidatorConfig& validator = state_->config.validator;
  const int64_t step = state_->steps_done;
  return validator.enable && step > 0 && (step == 1 || step % validator.freq == 0);
}

int64_t Trainer::steps_done() const {
  return state_->steps_done;
}

std::vector<TensorView> Trainer::Parameters() const {
  std::vector<TensorView> views = state_->Named(state_->specs.parameters, state_->parameters);
  for (TensorView& buffer : state_->Named(state_->specs.buffers, state_->buffers))
    views.push_back(std::move(buffer));
  return views;
}

std::vector<TensorView> Trainer::Gradients() const {
  const bool has_copies = !state_->kept_gradients.empty();
  return state_->Named(state_->specs.parameters,
                       has_copies ? state_->kept_gradients : state_->gradients);
}

const TrainConfig& Trainer::config() const {
  return state_->config;
}

Device* Trainer::device() const {
  return state_->device.get();
}

int64_t Trainer::planned_bytes() const {
  int64_t held = 0, passing = 0;
  for (const std::optional<SizedExecutor>* executor :
       {&state_->step, &state_->accumulate, &state_->optimizer, &state_->validate}) {
    if (!*executor) continue;
    const PlannedMemory memory = (*executor)->planned_memory();
    held += memory.held;
    passing = std::max(passing, memory.passing);
  }
  return held + passing;
}

const std::vector<std::string>& Trainer::warnings() const {
  return state_->warnings;
}

const Module& Trainer::module() const {
  return state_->module;
}

}  // namespace strata

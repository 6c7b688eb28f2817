#include "runtime/train/trainer.h"

#include <cstring>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/models/model.h"
#include "runtime/torch/executor.h"
#include "runtime/train/parameters.h"
#include "runtime/train/programs.h"

namespace strata {
namespace {

using at::Tensor;

Tensor InitialValue(const ParameterSpec& spec, const TrainSetup& setup) {
  Tensor tensor = at::empty(spec.shape, at::kFloat);
  if (setup.init) {
    const TensorView* stored = setup.init->Find(spec.name);
    std::memcpy(tensor.mutable_data_ptr(), stored->bytes.data(), stored->bytes.size());
  } else {
    InitializeParameter(spec, setup.config.seed,
                        {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  }
  return tensor;
}

Result<Executor> MakeExecutor(const Module& module, std::string_view graph,
                              const Constants& constants) {
  STRATA_TRY(Plan plan, Lower(*module.FindGraph(graph), PlanOptions::Fastest()));
  return Executor::Bind(std::move(plan), constants);
}

TensorView ViewOf(const std::string& name, const Tensor& tensor) {
  return {.name = name,
          .dtype = TensorDtype::kF32,
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

std::vector<TensorView> Named(const std::vector<ParameterSpec>& specs,
                              const std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (size_t i = 0; i < tensors.size(); ++i)
    views.push_back(ViewOf(specs[i].name, tensors[i]));
  return views;
}

}  // namespace

struct Trainer::State {
  explicit State(const TrainSetup& setup)
      : config(setup.config), tokens(setup.tokens), specs(SpecsOf(setup.config)) {}

  TrainConfig config;
  TokenData tokens;
  ModelSpecs specs;
  std::vector<std::unique_ptr<Pass>> passes;
  Module module;
  std::optional<Executor> step, optimizer;

  std::vector<Tensor> parameters, buffers;
  std::vector<Tensor> gradients, tokens_per_expert;  // of the last step
  OptimizerState optimizer_state;
  Tensor rope_table;
  int64_t steps_done = 0;

  /// Inputs int64 `[batch, seq]` and the labels beside them: the tokens one further.
  std::pair<Tensor, Tensor> Batch(int64_t index) const {
    const std::vector<int64_t> ids = tokens.Step(index);
    const Tensor all = at::empty({config.batch_size, config.seq_len + 1}, at::kLong);
    std::memcpy(all.mutable_data_ptr(), ids.data(), ids.size() * sizeof(int64_t));
    const auto copy = [](const Tensor& part) { return part.clone(at::MemoryFormat::Contiguous); };
    return {copy(all.slice(1, 0, config.seq_len)), copy(all.slice(1, 1))};
  }

  Result<float> RunStep(int64_t index) {
    auto [inputs, labels] = Batch(index);
    std::vector<Tensor> arguments = parameters;
    arguments.insert(arguments.end(), buffers.begin(), buffers.end());
    arguments.insert(arguments.end(), {rope_table, std::move(inputs), std::move(labels)});
    STRATA_TRY(const std::vector<Tensor> outputs, step->Run(arguments));
    return TakeOutputs(outputs);
  }

  /// Keeps what the optimizer needs of a step; returns the loss.
  float TakeOutputs(const std::vector<Tensor>& outputs) {
    gradients.clear();
    for (size_t i = 1; i <= parameters.size(); ++i)
      gradients.push_back(outputs[i].contiguous());
    tokens_per_expert.assign(outputs.end() - std::ssize(buffers), outputs.end());
    return outputs[0].item<float>();
  }

  Result<float> RunOptimizer() {
    std::vector<Tensor> arguments = parameters;
    for (const std::vector<Tensor>* group :
         {&gradients, &optimizer_state.exp_avg, &optimizer_state.exp_avg_sq, &buffers,
          &tokens_per_expert}) {
      arguments.insert(arguments.end(), group->begin(), group->end());
    }
    arguments.push_back(optimizer_state.step);
    STRATA_TRY(const std::vector<Tensor> outputs, optimizer->Run(arguments));
    return outputs[0].item<float>();
  }

  float RunStepEagerly(int64_t index) {
    std::vector<Tensor> trained;
    for (const Tensor& parameter : parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const auto [inputs, labels] = Batch(index);
    const ModelTensors model{.parameters = trained, .buffers = buffers, .rope_table = rope_table};
    return TakeOutputs(LossAndGradients(config, model, inputs, labels));
  }

  float RunOptimizerEagerly() {
    const ModelTensors model{
        .parameters = parameters, .buffers = buffers, .rope_table = rope_table};
    return OptimizerStep(config, model, gradients, tokens_per_expert, optimizer_state)[0]
        .item<float>();
  }
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Create(TrainSetup setup) {
  auto state = std::make_unique<State>(setup);
  if (setup.init) {
    std::vector<ParameterSpec> stored = state->specs.parameters;
    stored.insert(stored.end(), state->specs.buffers.begin(), state->specs.buffers.end());
    STRATA_RETURN_IF_ERROR(MatchParameters(stored, *setup.init));
  }
  STRATA_TRY(state->passes, ParsePipeline(setup.passes, AllPasses()));
  at::set_num_threads(setup.threads);
  for (const ParameterSpec& spec : state->specs.parameters)
    state->parameters.push_back(InitialValue(spec, setup));
  for (const ParameterSpec& spec : state->specs.buffers)
    state->buffers.push_back(InitialValue(spec, setup));
  state->optimizer_state = InitialState(state->parameters);
  state->rope_table = RopeTable(state->config);
  return std::unique_ptr<Trainer>(new Trainer(std::move(state)));
}

Status Trainer::Compile(const CompileWatch& watch) {
  state_->module.ReserveStableIds(watch.first_stable_id);
  Constants constants;
  STRATA_RETURN_IF_ERROR(TraceTraining(state_->config, state_->module, constants));

  PassManager manager({.run_ref = watch.run_ref});
  for (std::unique_ptr<Pass>& pass : std::exchange(state_->passes, {}))
    manager.Add(std::move(pass));
  for (PassInstrumentation* watcher : watch.watchers)
    manager.Watch(*watcher);
  if (auto passed = manager.Run(state_->module); !passed) return std::move(passed).error();

  STRATA_TRY(state_->step, MakeExecutor(state_->module, kStepGraph, constants));
  STRATA_TRY(state_->optimizer, MakeExecutor(state_->module, kOptimizerGraph, constants));
  return Ok();
}

Result<StepReport> Trainer::Step() {
  STRATA_CHECK(state_->optimizer && state_->steps_done < state_->config.steps);
  const auto start = std::chrono::steady_clock::now();
  StepReport report;
  report.metrics.step = state_->steps_done + 1;
  STRATA_TRY(report.metrics.loss, state_->RunStep(state_->steps_done));
  STRATA_TRY(report.metrics.grad_norm, state_->RunOptimizer());
  report.wall = std::chrono::steady_clock::now() - start;
  for (const Executor* executor : {&*state_->step, &*state_->optimizer}) {
    report.executed.push_back(
        {.graph = executor->plan().graph, .fingerprint = executor->plan().graph_fingerprint});
  }
  ++state_->steps_done;
  return report;
}

StepReport Trainer::StepEagerly() {
  STRATA_CHECK(state_->steps_done < state_->config.steps);
  const auto start = std::chrono::steady_clock::now();
  StepReport report;
  report.metrics.step = state_->steps_done + 1;
  report.metrics.loss = state_->RunStepEagerly(state_->steps_done);
  report.metrics.grad_norm = state_->RunOptimizerEagerly();
  report.wall = std::chrono::steady_clock::now() - start;
  ++state_->steps_done;
  return report;
}

int64_t Trainer::steps_done() const {
  return state_->steps_done;
}

std::vector<TensorView> Trainer::Parameters() const {
  std::vector<TensorView> views = Named(state_->specs.parameters, state_->parameters);
  for (TensorView& buffer : Named(state_->specs.buffers, state_->buffers))
    views.push_back(std::move(buffer));
  return views;
}

std::vector<TensorView> Trainer::Gradients() const {
  return Named(state_->specs.parameters, state_->gradients);
}

const TrainConfig& Trainer::config() const {
  return state_->config;
}

const Module& Trainer::module() const {
  return state_->module;
}

}  // namespace strata

#include "runtime/train/programs.h"

#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/models/llama3.h"
#include "runtime/models/rope.h"
#include "runtime/models/scope.h"
#include "runtime/train/adamw.h"
#include "runtime/train/parameters.h"

namespace strata {
namespace {

using at::Tensor;

/// `layers.0.attention.wo` of `layers.0.attention.wo.weight`.
std::string ModuleOf(std::string_view parameter) {
  return std::string(parameter.substr(0, parameter.rfind('.')));
}

Tensor MetaTensor(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::empty(shape, at::TensorOptions().device(at::kMeta).dtype(dtype));
}

std::vector<TraceInput> ParameterInputs(const std::vector<ParameterSpec>& specs) {
  std::vector<TraceInput> inputs;
  for (const ParameterSpec& spec : specs) {
    inputs.push_back({.name = spec.name,
                      .kind = InputKind::kParameter,
                      .module = ModuleOf(spec.name),
                      .example = MetaTensor(spec.shape, at::kFloat)});
  }
  return inputs;
}

Status TraceStep(const TrainConfig& config, Module& module, Constants& constants) {
  TraceRequest request{.graph = std::string(kStepGraph),
                       .inputs = ParameterInputs(Llama3Parameters(config)),
                       .program = {}};
  const size_t count = request.inputs.size();
  for (TraceInput& parameter : request.inputs)
    parameter.example.requires_grad_(true);
  const Tensor rope_table = RopeTable(config.rope, config.head_dim);
  request.inputs.push_back({.name = "rope.cache",
                            .kind = InputKind::kBuffer,
                            .module = "rope",
                            .example = MetaTensor(rope_table.sizes(), rope_table.scalar_type())});
  for (const std::string_view name : {"tokens", "labels"}) {
    request.inputs.push_back(
        {.name = std::string(name),
         .kind = InputKind::kBatch,
         .module = {},
         .example = MetaTensor({config.batch_size, config.seq_len}, at::kLong)});
  }
  request.program = [&](std::span<const Tensor> inputs) {
    return LossAndGradients(config, inputs.first(count), inputs[count], inputs[count + 1],
                            inputs[count + 2]);
  };
  return Trace(module, request, constants);
}

Status TraceOptimizer(const TrainConfig& config, Module& module, Constants& constants) {
  const std::vector<ParameterSpec> specs = Llama3Parameters(config);
  TraceRequest request{
      .graph = std::string(kOptimizerGraph), .inputs = ParameterInputs(specs), .program = {}};
  const auto add_like_parameters = [&](std::string_view format, InputKind kind) {
    for (const ParameterSpec& spec : specs) {
      request.inputs.push_back({.name = fmt::format(fmt::runtime(format), spec.name),
                                .kind = kind,
                                .module = ModuleOf(spec.name),
                                .example = MetaTensor(spec.shape, at::kFloat)});
    }
  };
  add_like_parameters("{}.grad", InputKind::kGradient);
  add_like_parameters("{}.exp_avg", InputKind::kState);
  add_like_parameters("{}.exp_avg_sq", InputKind::kState);
  request.inputs.push_back({.name = "step",
                            .kind = InputKind::kState,
                            .module = "adamw",
                            .example = MetaTensor({}, at::kFloat)});
  request.program = [&](std::span<const Tensor> inputs) {
    const auto group = [&](size_t index) {
      return inputs.subspan(index * specs.size(), specs.size());
    };
    OptimizerState state{.exp_avg = {group(2).begin(), group(2).end()},
                         .exp_avg_sq = {group(3).begin(), group(3).end()},
                         .step = inputs.back()};
    return OptimizerStep(config, group(0), group(1), state);
  };
  return Trace(module, request, constants);
}

}  // namespace

std::vector<Tensor> LossAndGradients(const TrainConfig& config, std::span<const Tensor> parameters,
                                     const Tensor& rope_table, const Tensor& tokens,
                                     const Tensor& labels) {
  const Llama3 model(config, parameters, rope_table);
  const Tensor loss = CrossEntropyLoss(model.Forward(tokens), labels);

  const PhaseScope phase(Phase::kBackward);
  std::vector<Tensor> outputs = {loss};
  for (Tensor& gradient : torch::autograd::grad({loss}, {parameters.begin(), parameters.end()})) {
    outputs.push_back(std::move(gradient));
  }
  return outputs;
}

OptimizerState InitialState(std::span<const Tensor> parameters) {
  OptimizerState state;
  for (const Tensor& parameter : parameters) {
    state.exp_avg.push_back(at::zeros_like(parameter.detach()));
    state.exp_avg_sq.push_back(at::zeros_like(parameter.detach()));
  }
  state.step = at::zeros({}, at::kFloat);
  return state;
}

std::vector<Tensor> OptimizerStep(const TrainConfig& config, std::span<const Tensor> parameters,
                                  std::span<const Tensor> gradients, OptimizerState& state) {
  const std::vector<ParameterSpec> specs = Llama3Parameters(config);
  std::vector<TrainedTensor> tensors;
  for (size_t i = 0; i < specs.size(); ++i) {
    tensors.push_back({.module = ModuleOf(specs[i].name),
                       .parameter = parameters[i],
                       .gradient = gradients[i],
                       .exp_avg = state.exp_avg[i],
                       .exp_avg_sq = state.exp_avg_sq[i]});
  }
  const Tensor norm = GradientNorm(tensors);
  ClipAndUpdate(config.optimizer, tensors, norm, state.step);
  return {norm};
}

Status TraceTraining(const TrainConfig& config, Module& module, Constants& constants) {
  STRATA_RETURN_IF_ERROR(TraceStep(config, module, constants));
  return TraceOptimizer(config, module, constants);
}

}  // namespace strata

#include "runtime/train/programs.h"

#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/models/layers.h"
#include "runtime/models/model.h"
#include "runtime/models/moe.h"
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

/// Adds an input for each spec; `format` makes its name of the spec's.
void AddInputs(TraceRequest& request, const std::vector<ParameterSpec>& specs, InputKind kind,
               std::string_view format = "{}") {
  for (const ParameterSpec& spec : specs) {
    request.inputs.push_back({.name = fmt::format(fmt::runtime(format), spec.name),
                              .kind = kind,
                              .module = ModuleOf(spec.name),
                              .example = MetaTensor(spec.shape, at::kFloat)});
  }
}

/// Takes groups of inputs in the order in which they were added.
class InputReader {
 public:
  explicit InputReader(std::span<const Tensor> inputs) : rest_(inputs) {}
  std::span<const Tensor> Next(size_t count) {
    const std::span<const Tensor> group = rest_.first(count);
    rest_ = rest_.subspan(count);
    return group;
  }
  Tensor Next() { return Next(1)[0]; }

 private:
  std::span<const Tensor> rest_;
};

Status TraceStep(const TrainConfig& config, Module& module, Constants& constants) {
  const ModelSpecs specs = SpecsOf(config);
  TraceRequest request{.graph = std::string(kStepGraph), .inputs = {}, .program = {}};
  AddInputs(request, specs.parameters, InputKind::kParameter);
  for (TraceInput& parameter : request.inputs)
    parameter.example.requires_grad_(true);
  AddInputs(request, specs.buffers, InputKind::kBuffer);
  const Tensor rope_table = RopeTable(config);
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
    InputReader reader(inputs);
    const ModelTensors model{.parameters = reader.Next(specs.parameters.size()),
                             .buffers = reader.Next(specs.buffers.size()),
                             .rope_table = reader.Next()};
    const Tensor tokens = reader.Next();
    return LossAndGradients(config, model, tokens, reader.Next());
  };
  return Trace(module, request, constants);
}

Status TraceOptimizer(const TrainConfig& config, Module& module, Constants& constants) {
  const ModelSpecs specs = SpecsOf(config);
  TraceRequest request{.graph = std::string(kOptimizerGraph), .inputs = {}, .program = {}};
  AddInputs(request, specs.parameters, InputKind::kParameter);
  AddInputs(request, specs.parameters, InputKind::kGradient, "{}.grad");
  AddInputs(request, specs.parameters, InputKind::kState, "{}.exp_avg");
  AddInputs(request, specs.parameters, InputKind::kState, "{}.exp_avg_sq");
  AddInputs(request, specs.buffers, InputKind::kBuffer);
  for (const ParameterSpec& spec : specs.buffers) {
    request.inputs.push_back({.name = ModuleOf(spec.name) + ".tokens_per_expert",
                              .kind = InputKind::kBatch,
                              .module = ModuleOf(spec.name),
                              .example = MetaTensor(spec.shape, at::kLong)});
  }
  request.inputs.push_back({.name = "step",
                            .kind = InputKind::kState,
                            .module = "adamw",
                            .example = MetaTensor({}, at::kFloat)});
  request.program = [&](std::span<const Tensor> inputs) {
    InputReader reader(inputs);
    const auto next = [&] { return reader.Next(specs.parameters.size()); };
    ModelTensors model{.parameters = next(), .buffers = {}, .rope_table = {}};
    const std::span<const Tensor> gradients = next();
    const std::span<const Tensor> exp_avg = next();
    const std::span<const Tensor> exp_avg_sq = next();
    model.buffers = reader.Next(specs.buffers.size());
    const std::span<const Tensor> tokens_per_expert = reader.Next(specs.buffers.size());
    OptimizerState state{.exp_avg = {exp_avg.begin(), exp_avg.end()},
                         .exp_avg_sq = {exp_avg_sq.begin(), exp_avg_sq.end()},
                         .step = reader.Next()};
    return OptimizerStep(config, model, gradients, tokens_per_expert, state);
  };
  return Trace(module, request, constants);
}

}  // namespace

Tensor RopeTable(const TrainConfig& config) {
  return RopeTable(config.rope, config.rope_dim());
}

std::vector<Tensor> LossAndGradients(const TrainConfig& config, const ModelTensors& tensors,
                                     const Tensor& tokens, const Tensor& labels) {
  GivenWeights weights(tensors.parameters, tensors.buffers);
  const std::unique_ptr<Model> model = MakeModel(config, weights, tensors.rope_table);
  STRATA_CHECK(weights.all_used());
  const ModelOutput output = model->Forward(tokens);
  const Tensor loss = CrossEntropyLoss(output.logits, labels);

  const PhaseScope phase(Phase::kBackward);
  std::vector<Tensor> outputs = {loss};
  const std::vector<Tensor> parameters(tensors.parameters.begin(), tensors.parameters.end());
  for (Tensor& gradient : torch::autograd::grad({loss}, parameters))
    outputs.push_back(std::move(gradient));
  if (!tensors.buffers.empty()) {
    outputs.insert(outputs.end(), output.tokens_per_expert.begin(), output.tokens_per_expert.end());
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

std::vector<Tensor> OptimizerStep(const TrainConfig& config, const ModelTensors& model,
                                  std::span<const Tensor> gradients,
                                  std::span<const Tensor> tokens_per_expert,
                                  OptimizerState& state) {
  const ModelSpecs specs = SpecsOf(config);
  std::vector<TrainedTensor> tensors;
  for (size_t i = 0; i < specs.parameters.size(); ++i) {
    tensors.push_back({.module = ModuleOf(specs.parameters[i].name),
                       .parameter = model.parameters[i],
                       .gradient = gradients[i],
                       .exp_avg = state.exp_avg[i],
                       .exp_avg_sq = state.exp_avg_sq[i]});
  }
  const Tensor norm = GradientNorm(tensors);
  for (size_t i = 0; i < specs.buffers.size(); ++i) {
    const PhaseScope phase(Phase::kOptimizer);
    const ModuleScope scope(ModuleOf(specs.buffers[i].name));
    UpdateExpertBias(model.buffers[i], tokens_per_expert[i], *config.moe->load_balance_coeff);
  }
  ClipAndUpdate(config.optimizer, tensors, norm, state.step);
  return {norm};
}

Status TraceTraining(const TrainConfig& config, Module& module, Constants& constants) {
  STRATA_RETURN_IF_ERROR(TraceStep(config, module, constants));
  return TraceOptimizer(config, module, constants);
}

}  // namespace strata

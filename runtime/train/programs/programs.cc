#include "runtime/train/programs/programs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/config/parameters.h"
#include "runtime/models/layers.h"
#include "runtime/models/model.h"
#include "runtime/models/moe.h"
#include "runtime/models/rope.h"
#include "runtime/models/wide_type.h"
#include "runtime/trace/scope.h"
#include "runtime/train/programs/adamw.h"
#include "runtime/train/programs/joint_program.h"
#include "runtime/train/programs/param_groups.h"
#include "runtime/train/programs/schedule.h"

namespace strata {
namespace {

using at::Tensor;

size_t HeadIndex(const ModelSpecs& specs) {
  const std::vector<ParameterSpec>& parameters = specs.parameters;
  const auto head = std::ranges::find(parameters, "lm_head.weight", &ParameterSpec::name);
  return static_cast<size_t>(head - parameters.begin());
}

/// What the model computes with: the parameters, or copies of them in a narrower type, whose
/// gradients autograd casts back.
std::vector<Tensor> ToComputeType(const TrainSpec& spec, std::span<const Tensor> parameters) {
  std::vector<Tensor> compute(parameters.begin(), parameters.end());
  if (spec.config.mixed_precision_param != Precision::kBFloat16) return compute;
  for (size_t i = 0; i < compute.size(); ++i) {
    const ModuleScope scope(ModuleOfTensor(spec.model.parameters[i].name));
    compute[i] = compute[i].to(at::kBFloat16);
  }
  return compute;
}

/// `[loss, gradients…]`.
std::vector<Tensor> WholeLossAndGradients(const Model& model, const Tensor& hidden,
                                          const BatchTensors& batch,
                                          const std::vector<Tensor>& parameters) {
  const Tensor loss = CrossEntropyLoss(model.Logits(hidden), batch.labels, batch.valid_labels);
  const PhaseScope phase(Phase::kBackward);
  std::vector<Tensor> outputs = {loss};
  for (Tensor& gradient : torch::autograd::grad({loss}, parameters))
    outputs.push_back(std::move(gradient));
  return outputs;
}

/// `x` `[batch, seq, …]` at the positions from `first` on: a copy also where the part of a single
/// row is contiguous as it lies, so that every batch runs the same operators.
Tensor PartOf(const Tensor& x, int64_t first, int64_t count) {
  const PhaseScope phase(Phase::kLoss);
  const ModuleScope scope("loss");
  return x.slice(1, first, first + count).clone(at::MemoryFormat::Contiguous);
}

/// The same with the logits of one part of the sequence at a time: each part's loss is
/// differentiated at once, down to the hidden states and the head's weight, and the gradient of all
/// hidden states, gathered in fp32, then goes through the model.
/// Source: torchtitan's ChunkedCELoss.
std::vector<Tensor> ChunkedLossAndGradients(const TrainSpec& spec, const Model& model,
                                            const Tensor& hidden, const BatchTensors& batch,
                                            const std::vector<Tensor>& parameters) {
  const int64_t seq_len = hidden.size(1);
  const int64_t chunk = seq_len / spec.config.loss.num_chunks;
  const size_t head_index = HeadIndex(spec.model);
  const Tensor& head = parameters[head_index];
  const Tensor valid =
      batch.valid_labels.defined() ? batch.valid_labels : CountLabels(batch.labels);
  Tensor given, loss, head_gradient, hidden_gradient;
  {
    const PhaseScope phase(Phase::kLoss);
    const ModuleScope scope("loss");
    given = hidden.detach();
    loss = at::zeros({}, hidden.options().dtype(WideType(hidden)).requires_grad(false));
    hidden_gradient = at::zeros(hidden.sizes(), loss.options());
  }
  for (int64_t first = 0; first < seq_len; first += chunk) {
    const Tensor leaf = PartOf(given, first, chunk).requires_grad_(true);
    const Tensor part_loss =
        CrossEntropyLoss(model.Logits(leaf), PartOf(batch.labels, first, chunk), valid);
    std::vector<Tensor> gradients;
    {
      const PhaseScope phase(Phase::kBackward);
      gradients = torch::autograd::grad({part_loss}, {leaf, head});
    }
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::kLoss);
    const ModuleScope scope("loss");
    loss = loss + part_loss;
    hidden_gradient.slice(1, first, first + chunk).copy_(gradients[0]);
    head_gradient = head_gradient.defined() ? head_gradient + gradients[1] : gradients[1];
  }

  Tensor outer;
  {
    const PhaseScope phase(Phase::kLoss);
    const ModuleScope scope("loss");
    outer = hidden_gradient.to(hidden.scalar_type());
  }
  const PhaseScope phase(Phase::kBackward);
  std::vector<Tensor> outputs = {loss};
  for (Tensor& gradient : torch::autograd::grad({hidden}, parameters, {outer}, std::nullopt,
                                                /*create_graph=*/false, /*allow_unused=*/true)) {
    outputs.push_back(std::move(gradient));
  }
  // A tied head is the embedding too.
  Tensor& total = outputs[1 + head_index];
  total = total.defined() ? total + head_gradient : head_gradient;
  return outputs;
}

}  // namespace

TrainSpec::TrainSpec(TrainConfig c, std::shared_ptr<const JointProgram> step)
    : config(std::move(c)), program(std::move(step)) {
  model.parameters = program->parameters();
}

bool HasRopeTable(const TrainConfig& config) {
  return !config.HasOwnModel();
}

Tensor RopeTable(const TrainConfig& config) {
  if (!HasRopeTable(config)) return {};
  return RopeTable(config.rope, config.rope_dim());
}

bool HasPositions(const TrainConfig& config) {
  return config.attn_mask_type == AttentionMask::kBlockCausal;
}

bool ReadsSizes(const TrainConfig& config) {
  return config.moe && !config.moe->use_grouped_mm;
}

bool HasLabelCount(const TrainConfig& config) {
  return config.accumulation_steps > 1;
}

std::vector<Tensor> BatchTensors::Inputs() const {
  std::vector<Tensor> inputs = {tokens, labels};
  if (positions.defined()) inputs.push_back(positions);
  if (valid_labels.defined()) inputs.push_back(valid_labels);
  return inputs;
}

std::vector<Tensor> LossAndGradients(const TrainSpec& spec, const ModelTensors& tensors,
                                     const BatchTensors& batch) {
  const TrainConfig& config = spec.config;
  if (spec.program) return spec.program->Run(tensors.parameters, tensors.constants, batch.Inputs());
  const std::vector<Tensor> compute = ToComputeType(spec, tensors.parameters);
  GivenWeights weights(compute, tensors.buffers);
  const std::unique_ptr<Model> model = MakeModel(config, weights, tensors.rope_table);
  STRATA_CHECK(weights.all_used());
  const ModelOutput output = model->Forward({.tokens = batch.tokens, .positions = batch.positions});

  const std::vector<Tensor> parameters(tensors.parameters.begin(), tensors.parameters.end());
  std::vector<Tensor> outputs =
      config.loss.name == LossFunction::kChunkedCrossEntropy
          ? ChunkedLossAndGradients(spec, *model, output.hidden, batch, parameters)
          : WholeLossAndGradients(*model, output.hidden, batch, parameters);
  if (!tensors.buffers.empty()) {
    outputs.insert(outputs.end(), output.tokens_per_expert.begin(), output.tokens_per_expert.end());
  }
  return outputs;
}

std::vector<Tensor> ValidationLoss(const TrainSpec& spec, const ModelTensors& tensors,
                                   const BatchTensors& batch) {
  const at::NoGradGuard no_grad;
  const TrainConfig& config = spec.config;
  const std::vector<Tensor> compute = ToComputeType(spec, tensors.parameters);
  GivenWeights weights(compute, tensors.buffers);
  const std::unique_ptr<Model> model = MakeModel(config, weights, tensors.rope_table);
  const Tensor hidden =
      model->Forward({.tokens = batch.tokens, .positions = batch.positions}).hidden;
  // In parts as the loss that is trained: the logits of all tokens need not be in memory.
  const int64_t parts =
      config.loss.name == LossFunction::kChunkedCrossEntropy ? config.loss.num_chunks : 1;
  const int64_t chunk = hidden.size(1) / parts;
  Tensor sum;
  for (int64_t first = 0; first < hidden.size(1); first += chunk) {
    const auto part = [&](const Tensor& x) { return parts == 1 ? x : PartOf(x, first, chunk); };
    const Tensor loss = CrossEntropySum(model->Logits(part(hidden)), part(batch.labels));
    const PhaseScope phase(Phase::kLoss);
    const ModuleScope scope("loss");
    sum = sum.defined() ? sum + loss : loss;
  }
  return {sum, CountLabels(batch.labels)};
}

std::vector<Tensor> Accumulate(const TrainSpec& spec, std::span<const Tensor> sums,
                               std::span<const Tensor> more) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(Phase::kOptimizer);
  const ModelSpecs& specs = spec.model;
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t parameters = specs.parameters.size();
    const ModuleScope scope(ModuleOfTensor(i < parameters ? specs.parameters[i].name
                                                          : specs.buffers[i - parameters].name));
    sums[i].add_(more[i]);
  }
  return {sums.begin(), sums.end()};
}

at::ScalarType ParameterType(const TrainConfig& config) {
  return config.dtype == Precision::kFloat64 ? at::kDouble : at::kFloat;
}

OptimizerState InitialState(const TrainConfig& config, std::span<const Tensor> parameters) {
  OptimizerState state;
  for (const Tensor& parameter : parameters) {
    state.exp_avg.push_back(at::zeros_like(parameter.detach()));
    state.exp_avg_sq.push_back(at::zeros_like(parameter.detach()));
  }
  state.step = at::zeros({}, at::kFloat);
  state.lr = at::scalar_tensor(LearningRate(config, 0), at::kDouble);
  for (const double lr : GroupLearningRates(config.optimizer))
    state.group_lr.push_back(at::scalar_tensor(LearningRate(config, 0, lr), at::kDouble));
  return state;
}

std::vector<Tensor> OptimizerStep(const TrainSpec& spec, const ModelTensors& model,
                                  std::span<const Tensor> gradients,
                                  std::span<const Tensor> tokens_per_expert,
                                  OptimizerState& state) {
  const TrainConfig& config = spec.config;
  const ModelSpecs& specs = spec.model;
  const auto settings = AdamWOfParameters(config.optimizer, specs.parameters);
  STRATA_CHECK(settings, "{}", settings.error().message());
  const std::vector<double> rates = GroupLearningRates(config.optimizer);
  const auto rate_of = [&](const AdamWConfig& adamw) {
    const auto group = std::ranges::find(rates, adamw.lr);
    if (group == rates.end()) return state.lr;
    return state.group_lr[static_cast<size_t>(group - rates.begin())];
  };
  std::vector<TrainedTensor> tensors;
  for (size_t i = 0; i < specs.parameters.size(); ++i) {
    tensors.push_back({.module = ModuleOfTensor(specs.parameters[i].name),
                       .parameter = model.parameters[i],
                       .gradient = gradients[i],
                       .exp_avg = state.exp_avg[i],
                       .exp_avg_sq = state.exp_avg_sq[i],
                       .adamw = (*settings)[i],
                       .lr = rate_of((*settings)[i])});
  }
  const Tensor norm = GradientNorm(tensors);
  for (size_t i = 0; i < specs.buffers.size(); ++i) {
    const PhaseScope phase(Phase::kOptimizer);
    const ModuleScope scope(ModuleOfTensor(specs.buffers[i].name));
    UpdateExpertBias(model.buffers[i], tokens_per_expert[i], *config.moe->load_balance_coeff);
  }
  ClipAndUpdate(config.optimizer.max_grad_norm, tensors, norm, state.step);
  return {norm};
}

}  // namespace strata

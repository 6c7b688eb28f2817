#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/models/model.h"

namespace strata {

// Training as programs over tensors. Called directly they run eagerly; traced they become the
// graphs of a training module.

inline constexpr std::string_view kStepGraph = "step";
inline constexpr std::string_view kAccumulateGraph = "accumulate";
inline constexpr std::string_view kOptimizerGraph = "optimizer";
inline constexpr std::string_view kValidateGraph = "validate";
/// Of the graph `validate` of a stage, `stage0.validate`.
inline constexpr std::string_view kStageValidateSuffix = ".validate";

class JointProgram;

/// A training: its configuration, and the tensors of its model, listed once.
struct TrainSpec {
  TrainConfig config;
  ModelSpecs model;
  std::shared_ptr<const JointProgram> program = nullptr;  ///< of config.model kProgram: its step

  /// REQUIRES: the model is not kProgram; the library of a kLibrary is loaded.
  explicit TrainSpec(TrainConfig c) : config(std::move(c)), model(SpecsOf(config)) {}
  TrainSpec(TrainConfig c, std::shared_ptr<const JointProgram> step);
};

/// The tensors that a model reads. Parameters and buffers in the order of `TrainSpec::model`.
struct ModelTensors {
  std::span<const at::Tensor> parameters;
  std::span<const at::Tensor> buffers;
  at::Tensor rope_table;                       ///< of `RopeTable`; undefined: the model has none
  std::span<const at::Tensor> constants = {};  ///< of a model kProgram
};

bool HasRopeTable(const TrainConfig& config);
/// The table of the model that `config` describes; undefined for a model of the user's.
at::Tensor RopeTable(const TrainConfig& config);

/// Of parameters, buffers, gradients and optimizer state.
at::ScalarType ParameterType(const TrainConfig& config);

/// What a step reads of the data; int64 `[batch, seq]`.
struct BatchTensors {
  at::Tensor tokens, labels;
  at::Tensor positions = {};     ///< if HasPositions(config)
  at::Tensor valid_labels = {};  ///< if HasLabelCount(config): fp32, `[]`

  /// Those that a step of `config` takes, in the order of the graph's inputs.
  std::vector<at::Tensor> Inputs() const;
};

/// Documents of a row are kept apart.
bool HasPositions(const TrainConfig& config);
/// Sizes of a step depend on data: its graph has symbols u0, u1, …, the rows of each expert.
bool ReadsSizes(const TrainConfig& config);
/// The loss is divided by the labels that count in all batches of the step, which is an
/// input of the graph of one batch.
bool HasLabelCount(const TrainConfig& config);

/// `[loss, gradient of each parameter…, tokens per expert of each buffer…]`: what the optimizer
/// needs to know of a step. REQUIRES: parameters with requires_grad.
std::vector<at::Tensor> LossAndGradients(const TrainSpec& spec, const ModelTensors& model,
                                         const BatchTensors& batch);

/// Adds what a further batch of a step gave to what those before gave, in place, and returns the
/// sums.
std::vector<at::Tensor> Accumulate(const TrainSpec& spec, std::span<const at::Tensor> sums,
                                   std::span<const at::Tensor> more);

/// Tensors of the optimizer, in the order of the parameters.
struct OptimizerState {
  std::vector<at::Tensor> exp_avg, exp_avg_sq;
  at::Tensor step;  ///< updates done: fp32, `[]`
  at::Tensor lr;    ///< of the next update: fp64, `[]`, on the CPU
  /// The same of parameter groups that have another: GroupLearningRates(config.optimizer).
  std::vector<at::Tensor> group_lr = {};
};

/// The state before the first step: zeros, and the learning rate of that step.
OptimizerState InitialState(const TrainConfig& config, std::span<const at::Tensor> parameters);

/// Updates parameters, buffers and state in place. `[norm of the gradients before clipping]`.
/// Expert biases, the only buffers, move after clipping and before AdamW, by the tokens that the
/// experts got in this step: the forward pass reads them and changes nothing.
std::vector<at::Tensor> OptimizerStep(const TrainSpec& spec, const ModelTensors& model,
                                      std::span<const at::Tensor> gradients,
                                      std::span<const at::Tensor> tokens_per_expert,
                                      OptimizerState& state);

/// `[sum of the cross-entropies of all labels that count, their number]`: for validation.
std::vector<at::Tensor> ValidationLoss(const TrainSpec& spec, const ModelTensors& model,
                                       const BatchTensors& batch);

}  // namespace strata

#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ir/module.h"
#include "ir/result.h"
#include "runtime/torch/tracer.h"
#include "runtime/train/config.h"

namespace strata {

// Training as two programs over tensors. Called directly they run eagerly; traced they become the
// two graphs of a training module.

inline constexpr std::string_view kStepGraph = "step";
inline constexpr std::string_view kOptimizerGraph = "optimizer";

/// The tensors that a model reads. Parameters and buffers in the order of `SpecsOf(config)`.
struct ModelTensors {
  std::span<const at::Tensor> parameters;
  std::span<const at::Tensor> buffers;
  at::Tensor rope_table;  ///< of `RopeTable`
};

/// The table of the model that `config` describes.
at::Tensor RopeTable(const TrainConfig& config);

/// `[loss, gradient of each parameter…, tokens per expert of each buffer…]`: what the optimizer
/// needs to know of a step. REQUIRES: parameters with requires_grad. Tokens and labels are int64
/// `[batch, seq]`.
std::vector<at::Tensor> LossAndGradients(const TrainConfig& config, const ModelTensors& model,
                                         const at::Tensor& tokens, const at::Tensor& labels);

/// Tensors of the optimizer, in the order of the parameters.
struct OptimizerState {
  std::vector<at::Tensor> exp_avg, exp_avg_sq;
  at::Tensor step;
};

/// The state before the first step: zeros.
OptimizerState InitialState(std::span<const at::Tensor> parameters);

/// Updates parameters, buffers and state in place. `[norm of the gradients before clipping]`.
/// Expert biases, the only buffers, move after clipping and before AdamW, by the tokens that the
/// experts got in this step: the forward pass reads them and changes nothing.
std::vector<at::Tensor> OptimizerStep(const TrainConfig& config, const ModelTensors& model,
                                      std::span<const at::Tensor> gradients,
                                      std::span<const at::Tensor> tokens_per_expert,
                                      OptimizerState& state);

/// Adds the graphs `step` and `optimizer` to `module`.
///
///   step       inputs: parameters, buffers, rope table, tokens, labels
///              outputs: loss, gradients, tokens per expert
///   optimizer  inputs: parameters, gradients, exp_avg, exp_avg_sq, buffers, tokens per expert,
///   step
///              output: gradient norm
Status TraceTraining(const TrainConfig& config, Module& module, Constants& constants);

}  // namespace strata

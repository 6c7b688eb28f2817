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

/// `[loss, gradient of each parameter…]`. Parameters in the order of `Llama3Parameters`, with
/// requires_grad; `rope_table` of `RopeTable`; tokens and labels int64 `[batch, seq]`.
std::vector<at::Tensor> LossAndGradients(const TrainConfig& config,
                                         std::span<const at::Tensor> parameters,
                                         const at::Tensor& rope_table, const at::Tensor& tokens,
                                         const at::Tensor& labels);

/// Tensors of the optimizer, in the order of the parameters.
struct OptimizerState {
  std::vector<at::Tensor> exp_avg, exp_avg_sq;
  at::Tensor step;
};

/// The state before the first step: zeros.
OptimizerState InitialState(std::span<const at::Tensor> parameters);

/// Updates parameters and state in place. `[norm of the gradients before clipping]`.
std::vector<at::Tensor> OptimizerStep(const TrainConfig& config,
                                      std::span<const at::Tensor> parameters,
                                      std::span<const at::Tensor> gradients, OptimizerState& state);

/// Adds the graphs `step` and `optimizer` to `module`.
///
///   step       inputs: parameters, rope table, tokens, labels         outputs: loss, gradients
///   optimizer  inputs: parameters, gradients, exp_avg, exp_avg_sq, step    output: gradient norm
Status TraceTraining(const TrainConfig& config, Module& module, Constants& constants);

}  // namespace strata

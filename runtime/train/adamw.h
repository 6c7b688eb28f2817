#pragma once
#include <optional>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "runtime/train/config.h"

namespace strata {

/// One trained tensor with its gradient and the optimizer's moments, all of one shape.
struct TrainedTensor {
  std::string module;  ///< path of the module that it is a parameter of
  at::Tensor parameter, gradient;
  at::Tensor exp_avg, exp_avg_sq;
};

/// Global L2 norm of the gradients: the norm of the tensors' norms, in their order. fp32, `[]`.
at::Tensor GradientNorm(std::span<const TrainedTensor> tensors);

/// Clips the gradients to `config.max_grad_norm`, given their norm, and updates parameters and
/// moments in place: AdamW (arXiv 1711.05101), every parameter decayed. Gradients stay as they are.
/// `step` (fp32, `[]`) counts the updates and is advanced; `lr` (fp64, `[]`) is the learning rate.
///
/// The operations and their order are those of torch.optim.AdamW's for-loop form, with the bias
/// corrections computed from `step` in fp64 as Python does, so that results are the same bits.
void ClipAndUpdate(const OptimizerConfig& config, std::span<TrainedTensor> tensors,
                   const at::Tensor& norm, const at::Tensor& step, const at::Tensor& lr);

}  // namespace strata

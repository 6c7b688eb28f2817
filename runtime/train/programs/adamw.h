#pragma once
#include <optional>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"

namespace strata {

/// One trained tensor with its gradient and optimizer state, all of one shape.
struct TrainedTensor {
  std::string module;  ///< path of the module that it is a parameter of
  at::Tensor parameter, gradient;
  at::Tensor exp_avg, exp_avg_sq;
  AdamWConfig adamw;
  at::Tensor lr;  ///< learning rate: fp64, `[]`
};

/// Global L2 norm of the gradients: the norm of the tensors' norms, in their order. fp32, `[]`.
at::Tensor GradientNorm(std::span<const TrainedTensor> tensors);

/// Clips the gradients to `max_grad_norm`, given their norm, and updates parameters and state in
/// place: AdamW (arXiv 1711.05101), as each tensor's settings say. Gradients stay as they are.
/// `step` (fp32, `[]`) counts the updates and is advanced.
///
/// The operations and their order are those of torch.optim.AdamW's for-loop form, with the bias
/// corrections computed from `step` in fp64 as Python does, so that results are the same bits.
void ClipAndUpdate(std::optional<double> max_grad_norm, std::span<TrainedTensor> tensors,
                   const at::Tensor& norm, const at::Tensor& step);

}  // namespace strata

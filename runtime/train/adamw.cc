#include "runtime/train/adamw.h"

#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>

#include "runtime/models/scope.h"

namespace strata {
namespace {

using at::Tensor;

/// What a gradient is multiplied by so that the norm is at most `max_norm`. The factor is 1 where
/// nothing is clipped: the graph has no branches.
/// Source: torch.nn.utils.clip_grads_with_norm_.
Tensor ClipFactor(const Tensor& norm, double max_norm) {
  return at::clamp(max_norm / (norm + 1e-6), /*min=*/std::nullopt, /*max=*/1.0);
}

/// All tensors in one operator, which divides gradients by `grad_scale` first, and leaves them so.
void UpdateTogether(const OptimizerConfig& config, std::span<TrainedTensor> tensors,
                    const Tensor& norm, const Tensor& step, const Tensor& lr) {
  std::optional<Tensor> grad_scale;
  if (config.max_grad_norm) {
    const ModuleScope scope("clip");
    grad_scale = at::clamp((norm + 1e-6) / *config.max_grad_norm, /*min=*/1.0);
  }
  const ModuleScope scope("adamw");
  step.add_(1);
  std::vector<Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
  for (const TrainedTensor& tensor : tensors) {
    parameters.push_back(tensor.parameter);
    gradients.push_back(tensor.gradient);
    exp_avgs.push_back(tensor.exp_avg);
    exp_avg_sqs.push_back(tensor.exp_avg_sq);
  }
  const std::vector<Tensor> steps(tensors.size(), step);
  at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                    lr.to(at::kFloat), config.beta1, config.beta2, config.weight_decay, config.eps,
                    /*amsgrad=*/false, /*maximize=*/false, grad_scale);
}

}  // namespace

Tensor GradientNorm(std::span<const TrainedTensor> tensors) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(Phase::kOptimizer);
  std::vector<Tensor> norms;
  if (CurrentTarget().is_gpu) {
    const ModuleScope scope("clip");
    std::vector<Tensor> gradients;
    for (const TrainedTensor& tensor : tensors)
      gradients.push_back(tensor.gradient);
    return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2.0)), 2.0);
  }
  for (const TrainedTensor& tensor : tensors) {
    const ModuleScope scope(tensor.module);
    norms.push_back(at::linalg_vector_norm(tensor.gradient, 2.0));
  }
  const ModuleScope scope("clip");
  return at::linalg_vector_norm(at::stack(norms), 2.0);
}

void ClipAndUpdate(const OptimizerConfig& config, std::span<TrainedTensor> tensors,
                   const Tensor& norm, const Tensor& step, const Tensor& lr) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(Phase::kOptimizer);
  if (CurrentTarget().is_gpu) return UpdateTogether(config, tensors, norm, step, lr);
  Tensor clip;
  if (config.max_grad_norm) {
    const ModuleScope scope("clip");
    clip = ClipFactor(norm, *config.max_grad_norm);
  }

  Tensor step_size, sqrt_bias_correction2, kept;
  {
    const ModuleScope scope("adamw");
    const Tensor t = step.add_(1).to(at::kDouble);
    const Tensor bias_correction1 = 1.0 - at::pow(config.beta1, t);
    const Tensor bias_correction2 = 1.0 - at::pow(config.beta2, t);
    step_size = lr.neg() / bias_correction1;
    sqrt_bias_correction2 = bias_correction2.sqrt();
    if (config.weight_decay != 0.0) kept = 1.0 - lr * config.weight_decay;
  }

  for (TrainedTensor& tensor : tensors) {
    const ModuleScope scope(tensor.module);
    const Tensor gradient = clip.defined() ? tensor.gradient * clip : tensor.gradient;
    if (kept.defined()) tensor.parameter.mul_(kept);
    tensor.exp_avg.lerp_(gradient, 1.0 - config.beta1);
    tensor.exp_avg_sq.mul_(config.beta2).addcmul_(gradient, gradient, 1.0 - config.beta2);
    const Tensor denominator = (tensor.exp_avg_sq.sqrt() / sqrt_bias_correction2).add_(config.eps);
    tensor.parameter.addcdiv_(tensor.exp_avg * step_size, denominator);
  }
}

}  // namespace strata

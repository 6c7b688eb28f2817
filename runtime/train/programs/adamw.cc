#include "runtime/train/programs/adamw.h"

#include <algorithm>
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

#include "runtime/trace/scope.h"

namespace strata {
namespace {

using at::Tensor;

/// What a gradient is multiplied by so that the norm is at most `max_norm`. The factor is 1 where
/// nothing is clipped: the graph has no branches.
/// Source: torch.nn.utils.clip_grads_with_norm_.
Tensor ClipFactor(const Tensor& norm, double max_norm) {
  return at::clamp(max_norm / (norm + 1e-6), /*min=*/std::nullopt, /*max=*/1.0);
}

/// All tensors of equal settings in one operator, which divides gradients by `grad_scale` first,
/// and leaves them so.
void UpdateTogether(std::optional<double> max_grad_norm, std::span<TrainedTensor> tensors,
                    const Tensor& norm, const Tensor& step) {
  std::optional<Tensor> grad_scale;
  if (max_grad_norm) {
    const ModuleScope scope("clip");
    grad_scale = at::clamp((norm + 1e-6) / *max_grad_norm, /*min=*/1.0);
  }
  const ModuleScope scope("adamw");
  step.add_(1);
  std::vector<const TrainedTensor*> left;
  for (const TrainedTensor& tensor : tensors)
    left.push_back(&tensor);
  while (!left.empty()) {
    const AdamWConfig& config = left.front()->adamw;
    const Tensor& lr = left.front()->lr;
    std::vector<Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
    for (const TrainedTensor* tensor : left) {
      if (tensor->adamw != config) continue;
      parameters.push_back(tensor->parameter);
      gradients.push_back(tensor->gradient);
      exp_avgs.push_back(tensor->exp_avg);
      exp_avg_sqs.push_back(tensor->exp_avg_sq);
    }
    const std::vector<Tensor> steps(parameters.size(), step);
    at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                      lr.to(at::kFloat), config.beta1, config.beta2, config.weight_decay,
                      config.eps, /*amsgrad=*/false, /*maximize=*/false, grad_scale);
    std::erase_if(left, [settings = config](const TrainedTensor* tensor) {
      return tensor->adamw == settings;
    });
  }
}

/// What is the same for all tensors of equal settings.
struct Factors {
  AdamWConfig config;
  Tensor step_size, sqrt_bias_correction2;
  Tensor kept;  ///< by weight decay; undefined: all
};

Factors MakeFactors(const TrainedTensor& tensor, const Tensor& t) {
  const AdamWConfig& config = tensor.adamw;
  Factors factors{.config = config, .step_size = {}, .sqrt_bias_correction2 = {}, .kept = {}};
  const Tensor bias_correction1 = 1.0 - at::pow(config.beta1, t);
  const Tensor bias_correction2 = 1.0 - at::pow(config.beta2, t);
  factors.step_size = tensor.lr.neg() / bias_correction1;
  factors.sqrt_bias_correction2 = bias_correction2.sqrt();
  if (config.weight_decay != 0.0) factors.kept = 1.0 - tensor.lr * config.weight_decay;
  return factors;
}

auto Find(const std::vector<Factors>& groups, const TrainedTensor& tensor) {
  return std::ranges::find(groups, tensor.adamw, &Factors::config);
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

void ClipAndUpdate(std::optional<double> max_grad_norm, std::span<TrainedTensor> tensors,
                   const Tensor& norm, const Tensor& step) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(Phase::kOptimizer);
  if (CurrentTarget().is_gpu) return UpdateTogether(max_grad_norm, tensors, norm, step);
  Tensor clip;
  if (max_grad_norm) {
    const ModuleScope scope("clip");
    clip = ClipFactor(norm, *max_grad_norm);
  }

  std::vector<Factors> groups;
  {
    const ModuleScope scope("adamw");
    const Tensor t = step.add_(1).to(at::kDouble);
    for (const TrainedTensor& tensor : tensors) {
      if (Find(groups, tensor) == groups.end()) groups.push_back(MakeFactors(tensor, t));
    }
  }

  for (TrainedTensor& tensor : tensors) {
    const ModuleScope scope(tensor.module);
    const AdamWConfig& config = tensor.adamw;
    const Factors& factors = *Find(groups, tensor);
    const Tensor gradient = clip.defined() ? tensor.gradient * clip : tensor.gradient;
    if (factors.kept.defined()) tensor.parameter.mul_(factors.kept);
    tensor.exp_avg.lerp_(gradient, 1.0 - config.beta1);
    tensor.exp_avg_sq.mul_(config.beta2).addcmul_(gradient, gradient, 1.0 - config.beta2);
    const Tensor denominator =
        (tensor.exp_avg_sq.sqrt() / factors.sqrt_bias_correction2).add_(config.eps);
    tensor.parameter.addcdiv_(tensor.exp_avg * factors.step_size, denominator);
  }
}

}  // namespace strata

#include "runtime/models/layers.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sum.h>

#include "runtime/models/scope.h"

namespace strata {

using at::Tensor;

Tensor Embedding(std::string_view name, const Tensor& weight, const Tensor& tokens,
                 std::source_location location) {
  ModuleScope scope(name, location);
  return at::embedding(weight, tokens);
}

Tensor Linear(std::string_view name, const Tensor& weight, const Tensor& x,
              std::source_location location) {
  ModuleScope scope(name, location);
  return at::linear(x, weight);
}

Tensor RmsNorm(std::string_view name, const Tensor& weight, const Tensor& x, double eps,
               std::source_location location) {
  ModuleScope scope(name, location);
  return at::rms_norm(x, {x.size(-1)}, weight, eps);
}

Tensor CausalAttention(std::string_view name, const Tensor& q, const Tensor& k, const Tensor& v,
                       std::source_location location) {
  ModuleScope scope(name, location);
  // The kernel itself, not `scaled_dot_product_attention`: that one chooses by device and takes
  // another path on Meta tensors, so that the traced graph would not be what eager runs.
  const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), /*dropout_p=*/0.0,
      /*is_causal=*/true, /*attn_mask=*/{},
      /*scale=*/1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  return out.transpose(1, 2).contiguous();
}

Tensor FeedForward(std::string_view name, const FeedForwardWeights& weights, const Tensor& x,
                   std::source_location location) {
  ModuleScope scope(name, location);
  const Tensor gate = at::silu(Linear("w1", weights.w1, x));
  return Linear("w2", weights.w2, gate * Linear("w3", weights.w3, x));
}

Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels, std::source_location location) {
  PhaseScope phase(Phase::kLoss);
  ModuleScope scope("loss", location);
  const Tensor sum =
      at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat), labels.flatten(0, 1),
                             /*weight=*/{}, at::Reduction::Sum, kIgnoredLabel);
  return sum / labels.ne(kIgnoredLabel).sum().to(at::kFloat);
}

}  // namespace strata

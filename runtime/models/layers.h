#pragma once
#include <cstdint>
#include <source_location>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace strata {

// Layers that models share. Each is a module of the name given, at the place of its caller.

/// Rows of `weight` `[vocab, dim]` at `tokens` (int64): `[..., dim]`.
at::Tensor Embedding(std::string_view name, const at::Tensor& weight, const at::Tensor& tokens,
                     std::source_location location = std::source_location::current());

/// x W^T without bias; `weight` is `[out, in]`.
at::Tensor Linear(std::string_view name, const at::Tensor& weight, const at::Tensor& x,
                  std::source_location location = std::source_location::current());

/// x · rsqrt(mean(x²) + eps) · weight over the last dimension (arXiv 1910.07467).
at::Tensor RmsNorm(std::string_view name, const at::Tensor& weight, const at::Tensor& x, double eps,
                   std::source_location location = std::source_location::current());

/// Causal softmax(q k^T / sqrt(head_dim)) v.
///
/// q `[batch, seq, heads, head_dim]`; k and v may have fewer heads (grouped queries, arXiv
/// 2305.13245): query head i reads head i / (heads / kv_heads). Returns q's shape.
at::Tensor CausalAttention(std::string_view name, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v,
                           std::source_location location = std::source_location::current());

/// w2(silu(w1 x) · w3 x) (SwiGLU, arXiv 2002.05202).
struct FeedForwardWeights {
  at::Tensor w1, w2, w3;
};
at::Tensor FeedForward(std::string_view name, const FeedForwardWeights& weights,
                       const at::Tensor& x,
                       std::source_location location = std::source_location::current());

/// Labels of this value do not count.
inline constexpr int64_t kIgnoredLabel = -100;

/// Sum of the cross-entropies of `logits` `[batch, seq, vocab]`, in fp32, against `labels`
/// `[batch, seq]`, divided by the number of labels that count. A scalar; phase kLoss.
at::Tensor CrossEntropyLoss(const at::Tensor& logits, const at::Tensor& labels,
                            std::source_location location = std::source_location::current());

}  // namespace strata

#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/config/parameters.h"
#include "runtime/models/sequence.h"
#include "runtime/models/weights.h"

namespace strata {

// Layers that models share. A layer's constructor asks for its weights in the slot of its parent;
// a call is a module of the layer's name, at the place of its caller.

/// First values of weights, as torchtitan draws them.
inline constexpr ParameterInit kLinearInit = {.std = 0.02, .cut = 2.0};
/// Of what is added to the residual stream: smaller in deeper layers (the first is 0).
ParameterInit ResidualInit(int64_t layer);

/// Rows of `weight` `[vocab, dim]` at `tokens` (int64): `[..., dim]`.
at::Tensor Embedding(std::string_view name, const at::Tensor& weight, const at::Tensor& tokens,
                     std::source_location location = std::source_location::current());

/// x W^T without bias; W is `[out, in]`.
class Linear {
 public:
  Linear(const Slot& slot, std::string_view name, int64_t in, int64_t out,
         ParameterInit init = kLinearInit);
  at::Tensor operator()(const at::Tensor& x,
                        std::source_location location = std::source_location::current()) const;
  /// The same in fp32, whatever the type of x and W.
  at::Tensor InFloat(const at::Tensor& x,
                     std::source_location location = std::source_location::current()) const;
  const at::Tensor& weight() const { return weight_; }

 private:
  std::string name_;
  at::Tensor weight_;
};

/// x · rsqrt(mean(x²) + eps) · weight over the last dimension (arXiv 1910.07467).
class RmsNorm {
 public:
  RmsNorm(const Slot& slot, std::string_view name, int64_t dim, double eps);
  at::Tensor operator()(const at::Tensor& x,
                        std::source_location location = std::source_location::current()) const;

 private:
  std::string name_;
  double eps_;
  at::Tensor weight_;
};

/// w2(silu(w1 x) · w3 x) (SwiGLU, arXiv 2002.05202).
class FeedForward {
 public:
  FeedForward(const Slot& slot, std::string_view name, int64_t dim, int64_t hidden_dim,
              int64_t layer);
  at::Tensor operator()(const at::Tensor& x,
                        std::source_location location = std::source_location::current()) const;

 private:
  std::string name_;
  Linear w1_, w2_, w3_;
};

/// softmax(scale · q k^T + mask) v; without a mask causal. `takes_mask`: by a kernel that takes
/// masks, also without one.
///
/// q `[batch, seq, heads, head_dim]`; k and v may have fewer heads (grouped queries, arXiv
/// 2305.13245): query head i reads head i / (heads / kv_heads). v may be wider or narrower than q
/// and k. Returns q's shape with v's last size.
at::Tensor Attention(std::string_view name, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, double scale, const at::Tensor& mask,
                     bool takes_mask = false,
                     std::source_location location = std::source_location::current());

/// The attention of a sequence: flex attention where the sequence says so. Shapes as above.
at::Tensor SelfAttention(std::string_view name, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, double scale, const Sequence& sequence,
                         std::source_location location = std::source_location::current());

/// Self-attention of Llama3 and Qwen3: heads share keys and values in groups; RoPE follows the
/// norms of `config.qk_norm`.
class GroupedQueryAttention {
 public:
  GroupedQueryAttention(const Slot& slot, const TrainConfig& config, int64_t layer);
  /// `x` `[batch, seq, dim]`.
  at::Tensor operator()(const at::Tensor& x, const Sequence& sequence,
                        std::source_location location = std::source_location::current()) const;

 private:
  int64_t head_dim_;
  RopeBackend rope_backend_;
  Linear wq_, wk_, wv_, wo_;
  std::optional<RmsNorm> q_norm_, k_norm_;
};

/// Labels of this value do not count.
inline constexpr int64_t kIgnoredLabel = -100;

/// How many labels count: fp32, a scalar; phase kLoss.
at::Tensor CountLabels(const at::Tensor& labels,
                       std::source_location location = std::source_location::current());

/// Sum of the cross-entropies of `logits` `[batch, seq, vocab]`, in fp32, against `labels`
/// `[batch, seq]`. A scalar; phase kLoss.
at::Tensor CrossEntropySum(const at::Tensor& logits, const at::Tensor& labels,
                           std::source_location location = std::source_location::current());

/// Sum of the cross-entropies of `logits` `[batch, seq, vocab]`, in fp32, against `labels`
/// `[batch, seq]`, divided by `valid_labels`, or by the number of labels that count if it is
/// undefined. A scalar; phase kLoss.
at::Tensor CrossEntropyLoss(const at::Tensor& logits, const at::Tensor& labels,
                            const at::Tensor& valid_labels = {},
                            std::source_location location = std::source_location::current());

}  // namespace strata

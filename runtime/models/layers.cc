#include "runtime/models/layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sum.h>

#include "runtime/models/rope.h"
#include "runtime/models/scope.h"

namespace strata {

using at::Tensor;

ParameterInit ResidualInit(int64_t layer) {
  return {.std = 0.02 / std::sqrt(2.0 * static_cast<double>(layer + 1)), .cut = 2.0};
}

Tensor Embedding(std::string_view name, const Tensor& weight, const Tensor& tokens,
                 std::source_location location) {
  ModuleScope scope(name, location);
  return at::embedding(weight, tokens);
}

Linear::Linear(const Slot& slot, std::string_view name, int64_t in, int64_t out, ParameterInit init)
    : name_(name), weight_(slot.In(name).Parameter("weight", {out, in}, init)) {}

Tensor Linear::operator()(const Tensor& x, std::source_location location) const {
  ModuleScope scope(name_, location);
  return at::linear(x, weight_);
}

Tensor Linear::InFloat(const Tensor& x, std::source_location location) const {
  ModuleScope scope(name_, location);
  return at::linear(x.to(at::kFloat), weight_.to(at::kFloat));
}

RmsNorm::RmsNorm(const Slot& slot, std::string_view name, int64_t dim, double eps)
    : name_(name), eps_(eps), weight_(slot.In(name).Parameter("weight", {dim}, {.mean = 1.0})) {}

Tensor RmsNorm::operator()(const Tensor& x, std::source_location location) const {
  ModuleScope scope(name_, location);
  return at::rms_norm(x, {x.size(-1)}, weight_, eps_);
}

FeedForward::FeedForward(const Slot& slot, std::string_view name, int64_t dim, int64_t hidden_dim,
                         int64_t layer)
    : name_(name),
      w1_(slot.In(name), "w1", dim, hidden_dim),
      w2_(slot.In(name), "w2", hidden_dim, dim, ResidualInit(layer)),
      w3_(slot.In(name), "w3", dim, hidden_dim, ResidualInit(layer)) {}

Tensor FeedForward::operator()(const Tensor& x, std::source_location location) const {
  ModuleScope scope(name_, location);
  const Tensor gate = at::silu(w1_(x));
  return w2_(gate * w3_(x));
}

Tensor Attention(std::string_view name, const Tensor& q, const Tensor& k, const Tensor& v,
                 double scale, const Tensor& mask, std::source_location location) {
  ModuleScope scope(name, location);
  // The kernel wants one head size. Zeros beyond a head's own change neither scores nor sums.
  const int64_t width = std::max(q.size(-1), v.size(-1));
  const auto heads_first = [&](const Tensor& x) {
    const Tensor full = x.size(-1) == width ? x : at::constant_pad_nd(x, {0, width - x.size(-1)});
    return full.transpose(1, 2);
  };
  // The kernel itself, not `scaled_dot_product_attention`: that one chooses by device and takes
  // another path on Meta tensors, so that the traced graph would not be what eager runs.
  const auto [padded, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      heads_first(q), heads_first(k), heads_first(v), /*dropout_p=*/0.0,
      /*is_causal=*/!mask.defined(), mask.defined() ? std::optional(mask) : std::nullopt, scale);
  const Tensor out = v.size(-1) == width ? padded : padded.slice(-1, 0, v.size(-1));
  return out.transpose(1, 2).contiguous();
}

GroupedQueryAttention::GroupedQueryAttention(const Slot& slot, const TrainConfig& c, int64_t layer)
    : head_dim_(c.head_dim),
      rope_backend_(c.rope.backend),
      wq_(slot, "qkv_linear.wq", c.dim, c.n_heads * c.head_dim),
      wk_(slot, "qkv_linear.wk", c.dim, c.n_kv_heads * c.head_dim),
      wv_(slot, "qkv_linear.wv", c.dim, c.n_kv_heads * c.head_dim),
      wo_(slot, "wo", c.n_heads * c.head_dim, c.dim, ResidualInit(layer)) {
  if (!c.qk_norm) return;
  q_norm_.emplace(slot, "q_norm", head_dim_, c.norm_eps);
  k_norm_.emplace(slot, "k_norm", head_dim_, c.norm_eps);
}

Tensor GroupedQueryAttention::operator()(const Tensor& x, const Sequence& sequence,
                                         std::source_location location) const {
  ModuleScope scope("attention", location);
  const auto heads = [&](const Tensor& projected) {  // [batch, seq, heads, head_dim]
    return projected.view({x.size(0), x.size(1), -1, head_dim_});
  };
  Tensor q = heads(wq_(x));
  Tensor k = heads(wk_(x));
  const Tensor v = heads(wv_(x));
  if (q_norm_) q = (*q_norm_)(q);
  if (k_norm_) k = (*k_norm_)(k);
  q = ApplyRope("rope", rope_backend_, sequence.rope, q);
  k = ApplyRope("rope", rope_backend_, sequence.rope, k);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
  return wo_(Attention("inner_attention", q, k, v, scale, sequence.mask).flatten(2));
}

Tensor CountLabels(const Tensor& labels, std::source_location location) {
  PhaseScope phase(Phase::kLoss);
  ModuleScope scope("loss", location);
  return labels.ne(kIgnoredLabel).sum().to(at::kFloat);
}

Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels, const Tensor& valid_labels,
                        std::source_location location) {
  PhaseScope phase(Phase::kLoss);
  ModuleScope scope("loss", location);
  const Tensor sum =
      at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat), labels.flatten(0, 1),
                             /*weight=*/{}, at::Reduction::Sum, kIgnoredLabel);
  return sum /
         (valid_labels.defined() ? valid_labels : labels.ne(kIgnoredLabel).sum().to(at::kFloat));
}

}  // namespace strata

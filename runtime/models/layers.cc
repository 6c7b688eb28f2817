#include "runtime/models/layers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_compositeimplicitautograd_dispatch.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sum.h>

#include "runtime/aten/exceptions.h"
#include "runtime/aten/literals.h"
#include "runtime/models/rope.h"
#include "runtime/models/wide_type.h"
#include "runtime/plan/device/attention.h"
#include "runtime/trace/scope.h"

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
  const at::ScalarType wide = WideType(x);
  return at::linear(x.to(wide), weight_.to(wide));
}

RmsNorm::RmsNorm(const Slot& slot, std::string_view name, int64_t dim, double eps)
    : name_(name), eps_(eps), weight_(slot.In(name).Parameter("weight", {dim}, {.mean = 1.0})) {}

Tensor RmsNorm::operator()(const Tensor& x, std::source_location location) const {
  ModuleScope scope(name_, location);
  // The CPU has no kernel for it: there it is the operators that it consists of, on Meta tensors,
  // too.
  const bool is_one_kernel = CurrentTarget().is_gpu;
  return std::get<0>(is_one_kernel ? at::_fused_rms_norm(x, {x.size(-1)}, weight_, eps_)
                                   : at::compositeimplicitautograd::_fused_rms_norm(x, {x.size(-1)},
                                                                                    weight_, eps_));
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

namespace {

/// Each head of keys or values as often as queries share it.
Tensor RepeatHeads(const Tensor& x, int64_t heads) {
  if (x.size(1) == heads) return x;
  const int64_t times = heads / x.size(1);
  return x.unsqueeze(2).expand({-1, -1, times, -1, -1}).flatten(1, 2);
}

/// Whether each head of each row begins at a multiple of kHeadUnit elements of its storage, as a
/// part of a wider projection may not. `[batch, seq, heads, head_dim]`
bool BeginsAtUnits(const Tensor& x) {
  return x.storage_offset() % kHeadUnit == 0 && x.stride(1) % kHeadUnit == 0 &&
         x.stride(2) % kHeadUnit == 0;
}

/// For each head and batch, its rows beginning at multiples of 16 elements, as the kernel reads it.
std::optional<Tensor> MaskOfHeads(const std::optional<Tensor>& mask, const Tensor& q) {
  if (!mask) return std::nullopt;
  const int64_t seq = mask->size(-1), missing = (16 - seq % 16) % 16;
  const Tensor typed = mask->to(q.scalar_type());
  const Tensor rows =
      missing == 0 ? typed : at::constant_pad_nd(typed, {0, missing}).slice(-1, 0, seq);
  return rows.expand({q.size(0), q.size(1), -1, -1});
}

/// The kernel itself, not `scaled_dot_product_attention`: that one chooses by device and takes
/// another path on Meta tensors, so that the traced graph would not be what eager runs.
/// `[batch, heads, seq, head_dim]`.
Tensor AttentionOf(AttentionKernel kernel, const Tensor& q, const Tensor& k, const Tensor& v,
                   double scale, const std::optional<Tensor>& mask) {
  const bool is_causal = !mask;
  switch (kernel) {
    case AttentionKernel::kCpu:
      return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, /*dropout_p=*/0.0,
                                                                         is_causal, mask, scale));
    case AttentionKernel::kFlash:
      return std::get<0>(at::_scaled_dot_product_flash_attention(
          q, k, v, /*dropout_p=*/0.0, is_causal, /*return_debug_mask=*/false, scale));
    case AttentionKernel::kEfficient:
      return std::get<0>(at::_scaled_dot_product_efficient_attention(
          q, RepeatHeads(k, q.size(1)), RepeatHeads(v, q.size(1)), MaskOfHeads(mask, q),
          /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, is_causal, scale));
    case AttentionKernel::kCudnn:
      return std::get<0>(at::_scaled_dot_product_cudnn_attention(
          q, k, v, /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0,
          is_causal, /*return_debug_mask=*/false, scale));
  }
  TORCH_CHECK(false, "unknown attention kernel");
}

}  // namespace

Tensor Attention(std::string_view name, const Tensor& q, const Tensor& k, const Tensor& v,
                 double scale, const Tensor& mask, bool takes_mask, std::source_location location) {
  ModuleScope scope(name, location);
  const AttentionKernel kernel =
      OrThrow(ChooseAttention(CurrentTarget(), {.dtype = ToDType(q.scalar_type()),
                                                .head_dim = std::max(q.size(-1), v.size(-1)),
                                                .has_mask = takes_mask || mask.defined(),
                                                .is_grouped = q.size(2) != k.size(2),
                                                .is_single = k.size(1) == 1}));
  // Kernels want one head size. Zeros beyond a head's own change neither scores nor sums.
  int64_t width = std::max(q.size(-1), v.size(-1));
  if (kernel != AttentionKernel::kCpu) width = (width + kHeadUnit - 1) / kHeadUnit * kHeadUnit;
  const auto heads_first = [&](const Tensor& x) {
    if (x.size(-1) != width) {
      return at::constant_pad_nd(x, {0, width - x.size(-1)}).transpose(1, 2);
    }
    const bool is_taken = kernel == AttentionKernel::kCpu || BeginsAtUnits(x);
    return (is_taken ? x : x.contiguous()).transpose(1, 2);
  };
  const Tensor padded = AttentionOf(kernel, heads_first(q), heads_first(k), heads_first(v), scale,
                                    mask.defined() ? std::optional(mask) : std::nullopt);
  const Tensor out = v.size(-1) == width ? padded : padded.slice(-1, 0, v.size(-1));
  return out.transpose(1, 2).contiguous();
}

Tensor SelfAttention(std::string_view name, const Tensor& q, const Tensor& k, const Tensor& v,
                     double scale, const Sequence& sequence, std::source_location location) {
  if (!sequence.flex)
    return Attention(name, q, k, v, scale, sequence.mask, sequence.is_cut, location);
  ModuleScope scope(name, location);
  return FlexAttention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), *sequence.flex,
                       scale)
      .transpose(1, 2)
      .contiguous();
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
  return wo_(SelfAttention("inner_attention", q, k, v, scale, sequence).flatten(2));
}

Tensor CountLabels(const Tensor& labels, std::source_location location) {
  PhaseScope phase(Phase::kLoss);
  ModuleScope scope("loss", location);
  return labels.ne(kIgnoredLabel).sum().to(at::kFloat);
}

Tensor CrossEntropySum(const Tensor& logits, const Tensor& labels, std::source_location location) {
  PhaseScope phase(Phase::kLoss);
  ModuleScope scope("loss", location);
  return at::cross_entropy_loss(logits.flatten(0, 1).to(WideType(logits)), labels.flatten(0, 1),
                                /*weight=*/{}, at::Reduction::Sum, kIgnoredLabel);
}

Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels, const Tensor& valid_labels,
                        std::source_location location) {
  PhaseScope phase(Phase::kLoss);
  const Tensor sum = CrossEntropySum(logits, labels, location);
  ModuleScope scope("loss", location);
  return sum /
         (valid_labels.defined() ? valid_labels : labels.ne(kIgnoredLabel).sum().to(at::kFloat));
}

}  // namespace strata

#include "runtime/models/deepseek_v3.h"

#include <cmath>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "runtime/models/decoder.h"
#include "runtime/models/layers.h"
#include "runtime/models/moe.h"
#include "runtime/models/rope.h"
#include "runtime/trace/scope.h"

namespace strata {

using at::Tensor;

/// wq x, or through a narrow latent vector: wq_b norm(wq_a x).
class QueryProjection {
 public:
  QueryProjection(const Slot& slot, const TrainConfig& c) {
    const int64_t width = c.n_heads * c.head_dim;
    const int64_t rank = c.mla.q_lora_rank;
    if (rank == 0) {
      wq_.emplace(slot, "wq", c.dim, width);
    } else {
      wq_a_.emplace(slot, "wq_a", c.dim, rank);
      norm_.emplace(slot, "q_norm", rank, c.norm_eps);
      wq_b_.emplace(slot, "wq_b", rank, width);
    }
  }

  Tensor operator()(const Tensor& x) const {
    return wq_ ? (*wq_)(x) : (*wq_b_)((*norm_)((*wq_a_)(x)));
  }

 private:
  std::optional<Linear> wq_, wq_a_, wq_b_;
  std::optional<RmsNorm> norm_;
};

/// The longer context that YaRN stretches to makes scores flatter; this makes up for it.
double AttentionScale(const TrainConfig& config) {
  double scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  if (config.rope.scaling == RopeScaling::kYarn) {
    const double stretch = 0.1 * config.mla.mscale * std::log(config.rope.rope_factor) + 1.0;
    scale *= stretch * stretch;
  }
  return scale;
}

/// Multi-head latent attention (arXiv 2405.04434, §2.1): keys and values come from a narrow latent
/// vector c, and the part of the keys that RoPE rotates is shared by all heads.
///
///   q = [q_nope | rope(q_pe)]  per head
///   c, k_pe = wkv_a x          [k_nope | v] = wkv_b norm(c)  per head
///   k = [k_nope | rope(k_pe)]  wo(attention(q, k, v))
class LatentAttention {
 public:
  LatentAttention(const Slot& slot, const TrainConfig& c, int64_t layer)
      : config_(c.mla),
        heads_(c.n_heads),
        scale_(AttentionScale(c)),
        rope_backend_(c.rope.backend),
        queries_(slot, c),
        wkv_a_(slot, "wkv_a", c.dim, config_.kv_lora_rank + config_.qk_rope_head_dim),
        kv_norm_(slot, "kv_norm", config_.kv_lora_rank, c.norm_eps),
        wkv_b_(slot, "wkv_b", config_.kv_lora_rank,
               heads_ * (config_.qk_nope_head_dim + config_.v_head_dim)),
        wo_(slot, "wo", heads_ * config_.v_head_dim, c.dim, ResidualInit(layer)) {}

  Tensor operator()(const Tensor& x, const Sequence& sequence,
                    std::source_location location = std::source_location::current()) const {
    ModuleScope scope("attention", location);
    const auto rotate = [&](const Tensor& part) {
      return ApplyRope("rope", rope_backend_, sequence.rope, part);
    };
    const auto heads = [&](const Tensor& projected) {  // [batch, seq, heads, width]
      return projected.unflatten(-1, {heads_, -1});
    };
    const auto [q_nope, q_pe] =
        Split(heads(queries_(x)), config_.qk_nope_head_dim, config_.qk_rope_head_dim);
    const auto [latent, k_pe] = Split(wkv_a_(x), config_.kv_lora_rank, config_.qk_rope_head_dim);
    const auto [k_nope, v] =
        Split(heads(wkv_b_(kv_norm_(latent))), config_.qk_nope_head_dim, config_.v_head_dim);

    const Tensor q = at::cat({q_nope, rotate(q_pe)}, -1);
    const Tensor shared_key = rotate(k_pe.unsqueeze(2)).expand({-1, -1, heads_, -1});
    const Tensor k = at::cat({k_nope, shared_key}, -1);
    return wo_(SelfAttention("inner_attention", q, k, v, scale_, sequence).flatten(2));
  }

 private:
  static std::pair<Tensor, Tensor> Split(const Tensor& x, int64_t first, int64_t second) {
    const std::vector<Tensor> parts = x.split_with_sizes({first, second}, -1);
    return {parts[0], parts[1]};
  }

  MlaConfig config_;
  int64_t heads_;
  double scale_;
  RopeBackend rope_backend_;
  QueryProjection queries_;
  Linear wkv_a_;
  RmsNorm kv_norm_;
  Linear wkv_b_, wo_;
};

class DeepSeekV3Block {
 public:
  DeepSeekV3Block(const Slot& slot, const TrainConfig& c, int64_t layer)
      : name_(slot.module()),
        attention_(slot.In("attention"), c, layer),
        attention_norm_(slot, "attention_norm", c.dim, c.norm_eps),
        ffn_norm_(slot, "ffn_norm", c.dim, c.norm_eps),
        feed_forward_(slot, c, layer) {}

  Tensor operator()(const Tensor& x, const Sequence& sequence,
                    std::vector<Tensor>& tokens_per_expert) const {
    ModuleScope scope(name_);
    const Tensor h = x + attention_(attention_norm_(x), sequence);
    return h + feed_forward_(ffn_norm_(h), tokens_per_expert);
  }

 private:
  std::string name_;
  LatentAttention attention_;
  RmsNorm attention_norm_, ffn_norm_;
  DenseOrExperts feed_forward_;
};

std::unique_ptr<Model> MakeDeepSeekV3(const TrainConfig& config, Weights& weights,
                                      Tensor rope_table) {
  return std::make_unique<Decoder<DeepSeekV3Block>>(config, weights, rope_table);
}

}  // namespace strata

#include "runtime/models/llama3.h"

#include <map>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>

#include "runtime/models/rope.h"
#include "runtime/models/scope.h"
#include "runtime/train/parameters.h"

namespace strata {

using at::Tensor;

Llama3::Llama3(const TrainConfig& config, std::span<const Tensor> parameters, Tensor rope_table)
    : head_dim_(config.head_dim),
      norm_eps_(config.norm_eps),
      rope_backend_(config.rope.backend),
      rope_table_(std::move(rope_table)) {
  const std::vector<ParameterSpec> specs = Llama3Parameters(config);
  STRATA_CHECK(specs.size() == parameters.size());
  std::map<std::string_view, const Tensor*> by_name;
  for (size_t i = 0; i < specs.size(); ++i)
    by_name[specs[i].name] = &parameters[i];
  const auto weight = [&](std::string_view module) {
    return *by_name.at(fmt::format("{}.weight", module));
  };

  lm_head_ = weight("lm_head");
  tok_embeddings_ = config.enable_weight_tying ? lm_head_ : weight("tok_embeddings");
  norm_ = weight("norm");
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const std::string name = fmt::format("layers.{}", i);
    const auto in_block = [&](std::string_view module) {
      return weight(fmt::format("{}.{}", name, module));
    };
    blocks_.push_back({.name = name,
                       .attention = {.wq = in_block("attention.qkv_linear.wq"),
                                     .wk = in_block("attention.qkv_linear.wk"),
                                     .wv = in_block("attention.qkv_linear.wv"),
                                     .wo = in_block("attention.wo")},
                       .feed_forward = {.w1 = in_block("feed_forward.w1"),
                                        .w2 = in_block("feed_forward.w2"),
                                        .w3 = in_block("feed_forward.w3")},
                       .attention_norm = in_block("attention_norm"),
                       .ffn_norm = in_block("ffn_norm")});
  }
}

Tensor Llama3::Forward(const Tensor& tokens) const {
  Tensor x = Embedding("tok_embeddings", tok_embeddings_, tokens);
  for (const Block& block : blocks_)
    x = RunBlock(block, x);
  x = RmsNorm("norm", norm_, x, norm_eps_);
  return Linear("lm_head", lm_head_, x);
}

Tensor Llama3::RunBlock(const Block& block, const Tensor& x) const {
  ModuleScope scope(block.name);
  const Tensor h =
      x + Attention(block.attention, RmsNorm("attention_norm", block.attention_norm, x, norm_eps_));
  return h + FeedForward("feed_forward", block.feed_forward,
                         RmsNorm("ffn_norm", block.ffn_norm, h, norm_eps_));
}

Tensor Llama3::Attention(const AttentionWeights& weights, const Tensor& x) const {
  ModuleScope scope("attention");
  const auto heads = [&](const Tensor& projected) {  // [batch, seq, heads, head_dim]
    return projected.view({x.size(0), x.size(1), -1, head_dim_});
  };
  Tensor q = heads(Linear("qkv_linear.wq", weights.wq, x));
  Tensor k = heads(Linear("qkv_linear.wk", weights.wk, x));
  const Tensor v = heads(Linear("qkv_linear.wv", weights.wv, x));
  q = ApplyRope("rope", rope_backend_, rope_table_, q);
  k = ApplyRope("rope", rope_backend_, rope_table_, k);
  const Tensor mixed = CausalAttention("inner_attention", q, k, v);
  return Linear("wo", weights.wo, mixed.flatten(2));
}

}  // namespace strata

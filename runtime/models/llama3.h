#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/models/layers.h"
#include "runtime/train/config.h"

namespace strata {

/// Llama 3 (arXiv 2407.21783) as torchtitan writes it, from plain ATen calls: the same code runs
/// eagerly and is traced. Holds references to its weights and no state of its own.
class Llama3 {
 public:
  /// `parameters` in the order of `Llama3Parameters(config)`; `rope_table` of `RopeTable`.
  Llama3(const TrainConfig& config, std::span<const at::Tensor> parameters, at::Tensor rope_table);

  /// Next-token logits of `tokens` (int64 `[batch, seq]`): `[batch, seq, vocab]`.
  at::Tensor Forward(const at::Tensor& tokens) const;

 private:
  struct AttentionWeights {
    at::Tensor wq;  ///< [heads · head_dim, dim]
    at::Tensor wk;  ///< [kv_heads · head_dim, dim]
    at::Tensor wv;  ///< [kv_heads · head_dim, dim]
    at::Tensor wo;  ///< [dim, heads · head_dim]
  };
  struct Block {
    std::string name;
    AttentionWeights attention;
    FeedForwardWeights feed_forward;
    at::Tensor attention_norm, ffn_norm;  ///< [dim]
  };

  at::Tensor RunBlock(const Block& block, const at::Tensor& x) const;
  at::Tensor Attention(const AttentionWeights& weights, const at::Tensor& x) const;

  int64_t head_dim_;
  double norm_eps_;
  RopeBackend rope_backend_;
  at::Tensor rope_table_;
  at::Tensor tok_embeddings_, norm_, lm_head_;
  std::vector<Block> blocks_;
};

}  // namespace strata

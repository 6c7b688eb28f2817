#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <fmt/format.h>

#include "runtime/models/chunks.h"
#include "runtime/models/layers.h"
#include "runtime/models/model.h"
#include "runtime/models/sequence.h"

namespace strata {

/// What all families are: embedding, blocks in a row, norm, head.
///
/// A `Block` is made of (slot, configuration, layer), and called with the residual
/// stream, what it may attend to, and the list that counts of experts' tokens are added to.
template <class Block>
class Decoder final : public Model {
 public:
  Decoder(const TrainConfig& config, Weights& weights, const at::Tensor& rope_table)
      : Decoder(config, Slot(weights), rope_table) {}

  ModelOutput Forward(const ModelInput& input) const override {
    ModelOutput output;
    const Sequence sequence = MakeSequence(config_, input.tokens, input.positions, rope_table_);
    at::Tensor x = Embedding("tok_embeddings", tok_embeddings_, input.tokens);
    for (const Block& block : blocks_)
      x = Call(block, x, sequence, output.tokens_per_expert);
    output.hidden = norm_(x);
    return output;
  }
  at::Tensor Logits(const at::Tensor& hidden) const override { return lm_head_(hidden); }

 private:
  Decoder(const TrainConfig& c, const Slot& slot, const at::Tensor& rope_table)
      : config_(c),
        tok_embeddings_(
            c.enable_weight_tying
                ? at::Tensor()
                : slot.Parameter("tok_embeddings.weight", {c.vocab_size, c.dim}, {.std = 1.0})),
        blocks_(MakeBlocks(c, slot)),
        norm_(slot, "norm", c.dim, c.norm_eps),
        lm_head_(slot, "lm_head", c.dim, c.vocab_size, HeadInit(c.dim)),
        rope_table_(rope_table) {
    if (c.enable_weight_tying) tok_embeddings_ = lm_head_.weight();
  }

  static std::vector<Block> MakeBlocks(const TrainConfig& config, const Slot& slot) {
    std::vector<Block> blocks;
    for (int64_t layer = 0; layer < config.n_layers; ++layer)
      blocks.emplace_back(slot.In(fmt::format("layers.{}", layer)), config, layer);
    return blocks;
  }

  /// A block with experts runs in chunks of the batch where the configuration says so.
  at::Tensor Call(const Block& block, const at::Tensor& x, const Sequence& sequence,
                  std::vector<at::Tensor>& tokens_per_expert) const {
    const ExpertOverlapConfig& chunks = config_.compile.ep_overlap;
    const int64_t layer = &block - blocks_.data();
    if (!chunks.InProgram() || !chunks.whole_layers || !config_.HasExperts(layer))
      return block(x, sequence, tokens_per_expert);
    const ChunkedModule chunked(fmt::format("layers.{}", layer), ChunkCount(config_));
    const std::vector<Sequence> sequences = chunked.CutBatch(sequence, x.size(0));
    return chunked.Call(x, chunks.along_seq, tokens_per_expert,
                        [&](const at::Tensor& part, size_t chunk, std::vector<at::Tensor>& counts) {
                          return block(part, sequences[chunk], counts);
                        });
  }

  static ParameterInit HeadInit(int64_t dim) {
    const double std = 1.0 / std::sqrt(static_cast<double>(dim));
    return {.std = std, .cut = 3.0 * std};
  }

  TrainConfig config_;
  at::Tensor tok_embeddings_;
  std::vector<Block> blocks_;
  RmsNorm norm_;
  Linear lm_head_;
  at::Tensor rope_table_;
};

}  // namespace strata

#include "runtime/models/qwen3.h"

#include <string>
#include <vector>

#include <ATen/TensorOperators.h>

#include "runtime/models/decoder.h"
#include "runtime/models/layers.h"
#include "runtime/models/moe.h"
#include "runtime/trace/scope.h"

namespace strata {

using at::Tensor;

/// Llama's block with norms of queries and keys (`config.qk_norm`), and perhaps with experts.
class Qwen3Block {
 public:
  Qwen3Block(const Slot& slot, const TrainConfig& c, int64_t layer)
      : name_(slot.module()),
        attention_(slot.In("attention"), c, layer),
        feed_forward_(slot, c, layer),
        attention_norm_(slot, "attention_norm", c.dim, c.norm_eps),
        ffn_norm_(slot, "ffn_norm", c.dim, c.norm_eps) {}

  Tensor operator()(const Tensor& x, const Sequence& sequence,
                    std::vector<Tensor>& tokens_per_expert) const {
    ModuleScope scope(name_);
    const Tensor h = x + attention_(attention_norm_(x), sequence);
    return h + feed_forward_(ffn_norm_(h), tokens_per_expert);
  }

 private:
  std::string name_;
  GroupedQueryAttention attention_;
  DenseOrExperts feed_forward_;
  RmsNorm attention_norm_, ffn_norm_;
};

std::unique_ptr<Model> MakeQwen3(const TrainConfig& config, Weights& weights, Tensor rope_table) {
  return std::make_unique<Decoder<Qwen3Block>>(config, weights, rope_table);
}

}  // namespace strata

#include "runtime/models/llama3.h"

#include <string>
#include <vector>

#include <ATen/TensorOperators.h>

#include "runtime/models/decoder.h"
#include "runtime/models/layers.h"
#include "runtime/trace/scope.h"

namespace strata {

using at::Tensor;

class Llama3Block {
 public:
  Llama3Block(const Slot& slot, const TrainConfig& c, int64_t layer)
      : name_(slot.module()),
        attention_(slot.In("attention"), c, layer),
        feed_forward_(slot, "feed_forward", c.dim, c.hidden_dim, layer),
        attention_norm_(slot, "attention_norm", c.dim, c.norm_eps),
        ffn_norm_(slot, "ffn_norm", c.dim, c.norm_eps) {}

  Tensor operator()(const Tensor& x, const Sequence& sequence,
                    std::vector<Tensor>& /*tokens_per_expert*/) const {
    ModuleScope scope(name_);
    const Tensor h = x + attention_(attention_norm_(x), sequence);
    return h + feed_forward_(ffn_norm_(h));
  }

 private:
  std::string name_;
  GroupedQueryAttention attention_;
  FeedForward feed_forward_;
  RmsNorm attention_norm_, ffn_norm_;
};

std::unique_ptr<Model> MakeLlama3(const TrainConfig& config, Weights& weights, Tensor rope_table) {
  return std::make_unique<Decoder<Llama3Block>>(config, weights, rope_table);
}

}  // namespace strata

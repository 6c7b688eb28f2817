#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"
#include "tests/support/graphs.h"

namespace strata::testing {

// Small models of each family that train fast. Tests change them by overrides.

inline constexpr std::string_view kSmallLlama3 = R"(
model = "llama3"
init = "torchtitan_sharpened"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 40
multiple_of = 8
seq_len = 10
batch_size = 3
steps = 4
seed = 5
[rope]
original_max_position_embeddings = 64
)";

inline constexpr std::string_view kSmallQwen3 = R"(
model = "qwen3"
init = "torchtitan_sharpened"
dim = 24
n_layers = 2
n_heads = 4
n_kv_heads = 2
head_dim = 8
hidden_dim = 20
vocab_size = 40
enable_weight_tying = true
seq_len = 10
batch_size = 3
steps = 4
seed = 6
)";

inline constexpr std::string_view kSmallDeepSeekV3 = R"(
model = "deepseek_v3"
init = "torchtitan_sharpened"
dim = 24
n_layers = 3
n_heads = 3
hidden_dim = 20
vocab_size = 40
seq_len = 10
batch_size = 3
steps = 4
seed = 7
[mla]
kv_lora_rank = 12
qk_nope_head_dim = 8
qk_rope_head_dim = 4
v_head_dim = 8
mscale = 0.7
[moe]
num_experts = 8
top_k = 3
moe_hidden_dim = 12
num_shared_experts = 2
[rope]
rope_factor = 4.0
original_seq_len = 6
)";

inline TrainConfig SmallConfig(std::string_view text,
                               const std::vector<std::string>& overrides = {}) {
  return OrDie(ParseTrainConfig(text, ConfigFormat::kToml, "small.toml", overrides));
}

}  // namespace strata::testing

// Models that no configuration may have.

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/train/config_errors.h"

namespace strata {
namespace {

using testing::ErrorWith;
using testing::ErrorWithSet;
using testing::ErrorWithSets;
using testing::MessageOf;

TEST_CASE("heads must divide the width, key/value heads the heads") {
  CHECK_EQ(
      ErrorWithSets({"head_dim=null", "n_heads=6"}),
      "impossible value for 'n_heads': --set n_heads=6: 6 heads do not divide dim 64, choose a "
      "divisor of it or give head_dim");
  CHECK_EQ(
      ErrorWith("\"n_kv_heads\": 2", "\"n_kv_heads\": 3"),
      "impossible value for 'n_kv_heads': c.json:6: 3 key/value heads do not divide n_heads 4, "
      "choose a divisor of it");
  CHECK_EQ(
      ErrorWith("\"n_kv_heads\": 2", "\"n_kv_heads\": 8"),
      "impossible value for 'n_kv_heads': c.json:6: 8 key/value heads do not divide n_heads 4, "
      "choose a divisor of it");
  CHECK_EQ(
      ErrorWith("\"head_dim\": 16", "\"head_dim\": 15"),
      "impossible value for 'head_dim': c.json:7: rotary embeddings turn pairs, so head_dim 15 "
      "must be even");
}

TEST_CASE("norms and rotary embeddings that cannot work are refused") {
  CHECK_EQ(ErrorWithSet("norm_eps=0"),
           "impossible value for 'norm_eps': --set norm_eps=0: 0 must be more than 0");
  CHECK_EQ(ErrorWithSet("ffn_dim_multiplier=0"),
           "impossible value for 'ffn_dim_multiplier': --set ffn_dim_multiplier=0: 0 must be more "
           "than 0");
  CHECK_EQ(ErrorWithSet("ffn_dim_multiplier=1e300"),
           "impossible value for 'hidden_dim': c.json: 2147483648 must be from 1 to 2147483647");
  CHECK_EQ(ErrorWithSet("qk_norm=true"),
           "impossible value for 'qk_norm': --set qk_norm=true: llama3 has no norms of queries and "
           "keys, take false");
  CHECK_EQ(ErrorWithSet("rope.theta=0"),
           "impossible value for 'rope.theta': --set rope.theta=0: 0 must be more than 0");
  CHECK_EQ(
      ErrorWithSet("rope.max_seq_len=16"),
      "impossible value for 'rope.max_seq_len': --set rope.max_seq_len=16: 16 positions do not "
      "hold seq_len 32");
  CHECK_EQ(ErrorWithSet("rope.high_freq_factor=1"),
           "impossible value for 'rope.high_freq_factor': --set rope.high_freq_factor=1: 1 must be "
           "more than low_freq_factor 1");
}

TEST_CASE("fields of other models are refused as such") {
  CHECK_EQ(ErrorWith("\"seq_len\": 32,", "\"seq_len\": 32, \"moe\": {\"top_k\": 3},"),
           "key 'moe' is not for llama3: c.json:14: remove it");
  CHECK_EQ(ErrorWithSet("n_dense_layers=1"),
           "key 'n_dense_layers' is not for llama3: --set n_dense_layers=1: remove it");
  CHECK_EQ(ErrorWithSet("mla.mscale=1"),
           "key 'mla.mscale' is not for llama3: --set mla.mscale=1: remove it");
  CHECK_EQ(ErrorWithSet("moe=null"), "");
  CHECK_EQ(ErrorWithSets({"model=qwen3", "multiple_of=4"}),
           "key 'multiple_of' is not for qwen3: --set multiple_of=4: remove it");
  CHECK_EQ(ErrorWithSets({"model=qwen3", "mla.mscale=1"}),
           "key 'mla.mscale' is not for qwen3: --set mla.mscale=1: remove it");
  CHECK_EQ(ErrorWithSets({"model=deepseek_v3"}),
           "key 'head_dim' is not for deepseek_v3: c.json:7: remove it");
}

/// A small DeepSeek-V3 that every test below spoils in one place.
constexpr std::string_view kLatentExperts = R"(model = "deepseek_v3"
dim = 32
n_layers = 3
n_heads = 4
vocab_size = 64
hidden_dim = 48
steps = 2
seq_len = 8
batch_size = 2

[mla]
q_lora_rank = 12
kv_lora_rank = 16
qk_nope_head_dim = 8
qk_rope_head_dim = 4
v_head_dim = 8

[moe]
num_experts = 12
top_k = 3
moe_hidden_dim = 16
num_shared_experts = 1
score_func = "sigmoid"
num_expert_groups = 4
num_limited_groups = 2

[rope]
rope_factor = 4.0
original_seq_len = 4
)";

std::string ExpertsError(const std::vector<std::string>& assignments) {
  return MessageOf(ParseTrainConfig(kLatentExperts, ConfigFormat::kToml, "e.toml", assignments));
}

TEST_CASE("a mixture of experts that no router can fill is refused") {
  CHECK_EQ(ExpertsError({}), "");
  CHECK_EQ(ExpertsError({"moe.top_k=13"}),
           "impossible value for 'moe.top_k': --set moe.top_k=13: a token cannot choose 13 of 12 "
           "experts, take from 1 to 12");
  CHECK_EQ(ExpertsError({"moe.top_k=0"}),
           "impossible value for 'moe.top_k': --set moe.top_k=0: a token cannot choose 0 of 12 "
           "experts, take from 1 to 12");
  CHECK_EQ(ExpertsError({"moe.top_k=7"}),
           "impossible value for 'moe.top_k': --set moe.top_k=7: 2 groups of 3 experts do not hold "
           "7 experts for a token, choose at most 6");
  CHECK_EQ(ExpertsError({"moe.num_experts=0"}),
           "impossible value for 'moe.num_experts': --set moe.num_experts=0: 0 must be from 1 to "
           "2147483647");
  CHECK_EQ(ExpertsError({"moe.num_experts=null"}),
           "missing key 'moe.num_experts': e.toml: give it a value");
  CHECK_EQ(
      ExpertsError({"moe.moe_hidden_dim=-1"}),
      "impossible value for 'moe.moe_hidden_dim': --set moe.moe_hidden_dim=-1: -1 must be from "
      "1 to 2147483647");
  CHECK_EQ(
      ExpertsError({"moe.num_shared_experts=-1"}),
      "impossible value for 'moe.num_shared_experts': --set moe.num_shared_experts=-1: -1 must "
      "be from 0 to 2147483647");
  CHECK_EQ(
      ExpertsError({"moe.num_shared_experts=2147483647"}),
      "impossible value for 'moe.num_shared_experts': --set moe.num_shared_experts=2147483647: "
      "2147483647 of width 16 are too wide together");
  CHECK_EQ(
      ExpertsError({"moe.route_scale=0"}),
      "impossible value for 'moe.route_scale': --set moe.route_scale=0: 0 must be more than 0");
  CHECK_EQ(ExpertsError({"moe.load_balance_coeff=0"}),
           "impossible value for 'moe.load_balance_coeff': --set moe.load_balance_coeff=0: 0 must "
           "be more than 0");
  CHECK_EQ(ExpertsError({"moe.score_func=tanh"}),
           "unknown moe.score_func: --set moe.score_func=tanh: found the string 'tanh', choose one "
           "of softmax, sigmoid");
  CHECK_EQ(ExpertsError({"moe=null"}),
           "missing table 'moe': e.toml: describe the experts, or take n_dense_layers 3");
  CHECK_EQ(ExpertsError({"moe=null", "n_dense_layers=3"}), "");
  CHECK_EQ(ExpertsError({"n_dense_layers=4"}),
           "impossible value for 'n_dense_layers': --set n_dense_layers=4: 4 must be from 0 to 3");
  CHECK_EQ(ExpertsError({"hidden_dim=null"}),
           "missing key 'hidden_dim': e.toml: give the width of the dense feed-forward layers");
  CHECK_EQ(ExpertsError({"hidden_dim=null", "n_dense_layers=0"}), "");
  CHECK_EQ(ExpertsError({"moe.num_experts=1000000000", "moe.num_expert_groups=null",
                         "moe.num_limited_groups=null"}),
           "model too large: e.toml: 3.1e+12 parameters, at most 1.1e+12 can be trained");
}

TEST_CASE("groups of experts must divide them and hold what a token takes") {
  CHECK_EQ(ExpertsError({"moe.num_expert_groups=5"}),
           "impossible value for 'moe.num_expert_groups': --set moe.num_expert_groups=5: 5 groups "
           "do not divide 12 experts, choose a divisor");
  CHECK_EQ(ExpertsError({"moe.num_expert_groups=12"}),
           "impossible value for 'moe.num_expert_groups': --set moe.num_expert_groups=12: a group "
           "is scored by its two best experts, so 12 experts make at most 6 groups");
  CHECK_EQ(ExpertsError({"moe.num_limited_groups=5"}),
           "impossible value for 'moe.num_limited_groups': --set moe.num_limited_groups=5: 5 must "
           "be from 1 to 4");
  CHECK_EQ(ExpertsError({"moe.num_limited_groups=null"}),
           "missing key 'moe.num_limited_groups': e.toml:24: give how many of the 4 groups a token "
           "may use");
  CHECK_EQ(
      ExpertsError({"moe.num_expert_groups=null"}),
      "impossible value for 'moe.num_limited_groups': e.toml:25: there are no groups to choose "
      "from, give moe.num_expert_groups");
}

TEST_CASE("latent attention with impossible widths is refused") {
  CHECK_EQ(ExpertsError({"mla.qk_rope_head_dim=5"}),
           "impossible value for 'mla.qk_rope_head_dim': --set mla.qk_rope_head_dim=5: rotary "
           "embeddings turn pairs, so 5 must be even");
  for (const char* key : {"mla.kv_lora_rank", "mla.qk_nope_head_dim", "mla.v_head_dim"}) {
    CHECK_EQ(ExpertsError({fmt::format("{}=0", key)}),
             fmt::format("impossible value for '{0}': --set {0}=0: 0 must be from 1 to 2147483647",
                         key));
  }
  CHECK_EQ(ExpertsError({"mla.q_lora_rank=-1"}),
           "impossible value for 'mla.q_lora_rank': --set mla.q_lora_rank=-1: -1 must be from 0 to "
           "2147483647");
  CHECK_EQ(ExpertsError({"mla.mscale=-0.5"}),
           "impossible value for 'mla.mscale': --set mla.mscale=-0.5: -0.5 must be at least 0");
  CHECK_EQ(ExpertsError({"n_kv_heads=2"}),
           "impossible value for 'n_kv_heads': --set n_kv_heads=2: latent attention has keys and "
           "values for each of the 4 heads, remove it");
  CHECK_EQ(ExpertsError({"qk_norm=true"}),
           "impossible value for 'qk_norm': --set qk_norm=true: deepseek_v3 has no norms of each "
           "head's query and key, take false");
  CHECK_EQ(ExpertsError({"mla.kv_lora_ranks=3"}),
           "unknown key 'mla.kv_lora_ranks': --set mla.kv_lora_ranks=3: did you mean "
           "'mla.kv_lora_rank'?");
}

TEST_CASE("YaRN that stretches nothing sensible is refused") {
  CHECK_EQ(ExpertsError({"rope.rope_factor=0.5"}),
           "impossible value for 'rope.rope_factor': --set rope.rope_factor=0.5: 0.5 must be at "
           "least 1");
  CHECK_EQ(ExpertsError({"rope.beta_fast=1"}),
           "impossible value for 'rope.beta_fast': --set rope.beta_fast=1: 1 must be more than "
           "beta_slow 1");
  CHECK_EQ(ExpertsError({"rope.beta_slow=0"}),
           "impossible value for 'rope.beta_slow': --set rope.beta_slow=0: 0 must be more than 0");
  CHECK_EQ(ExpertsError({"rope.original_seq_len=0"}),
           "impossible value for 'rope.original_seq_len': --set rope.original_seq_len=0: 0 must be "
           "from 1 to 2147483647");
  CHECK_EQ(
      ExpertsError({"rope.theta=1"}),
      "impossible value for 'rope.theta': --set rope.theta=1: YaRN divides by its logarithm, 1 "
      "will not do");
}

TEST_CASE("Qwen3 needs a width unless every layer has experts") {
  const std::vector<std::string> qwen = {"model=qwen3", "rope.scaling=none"};
  CHECK_EQ(ErrorWithSets(qwen),
           "missing key 'hidden_dim': c.json: give the width of the dense feed-forward layers");
  CHECK_EQ(ErrorWithSets({"model=qwen3", "hidden_dim=24"}), "");
  CHECK_EQ(
      ErrorWithSets({"model=qwen3", "moe.num_experts=4", "moe.top_k=2", "moe.moe_hidden_dim=8"}),
      "");
  CHECK_EQ(ErrorWithSets({"model=qwen3", "moe.num_experts=4"}),
           "missing key 'moe.top_k': c.json: give it a value");
}

}  // namespace
}  // namespace strata

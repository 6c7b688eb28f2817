#include "runtime/models/model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/files/safetensors.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;

TrainConfig ConfigOfModel(std::string_view model, const std::vector<std::string>& fields) {
  std::vector<std::string> all = {fmt::format("model={}", model), "steps=1", "seq_len=8",
                                  "batch_size=1"};
  all.insert(all.end(), fields.begin(), fields.end());
  return OrDie(ParseTrainConfig("", ConfigFormat::kToml, "c.toml", all));
}

const std::vector<std::string> kSmall = {"dim=8", "n_layers=2", "n_heads=4", "vocab_size=10",
                                         "hidden_dim=12"};

std::vector<std::string> WithFields(std::vector<std::string> fields,
                                    const std::vector<std::string>& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

/// Tensors outside the layers, and those of one layer.
std::string Listing(const TrainConfig& config, int layer) {
  std::string listing;
  const ModelSpecs specs = SpecsOf(config);
  const auto add = [&](const std::vector<ParameterSpec>& group, std::string_view mark) {
    for (const ParameterSpec& spec : group) {
      const bool is_of_layer = spec.name.starts_with(fmt::format("layers.{}.", layer));
      if (spec.name.starts_with("layers.") && !is_of_layer) continue;
      listing +=
          fmt::format("{}{} {}\n", mark, spec.name, DescribeType(TensorDtype::kF32, spec.shape));
    }
  };
  add(specs.parameters, "");
  add(specs.buffers, "buffer ");
  return listing;
}

const ParameterSpec& Get(const ModelSpecs& specs, std::string_view name) {
  const auto found = std::ranges::find(specs.parameters, name, &ParameterSpec::name);
  REQUIRE(found != specs.parameters.end());
  return *found;
}

TEST_CASE("Llama3's parameters have torchtitan's names, order and shapes") {
  CHECK_EQ(Listing(ConfigOfModel("llama3", WithFields(kSmall, {"n_kv_heads=2", "head_dim=6"})), 0),
           R"(tok_embeddings.weight F32 [10, 8]
layers.0.attention.qkv_linear.wq.weight F32 [24, 8]
layers.0.attention.qkv_linear.wk.weight F32 [12, 8]
layers.0.attention.qkv_linear.wv.weight F32 [12, 8]
layers.0.attention.wo.weight F32 [8, 24]
layers.0.feed_forward.w1.weight F32 [12, 8]
layers.0.feed_forward.w2.weight F32 [8, 12]
layers.0.feed_forward.w3.weight F32 [12, 8]
layers.0.attention_norm.weight F32 [8]
layers.0.ffn_norm.weight F32 [8]
norm.weight F32 [8]
lm_head.weight F32 [10, 8]
)");
}

TEST_CASE("Qwen3 adds norms of queries and keys, and ties embedding and head on demand") {
  CHECK_EQ(Listing(ConfigOfModel("qwen3", WithFields(kSmall, {"enable_weight_tying=true"})), 1),
           R"(layers.1.attention.qkv_linear.wq.weight F32 [8, 8]
layers.1.attention.qkv_linear.wk.weight F32 [8, 8]
layers.1.attention.qkv_linear.wv.weight F32 [8, 8]
layers.1.attention.wo.weight F32 [8, 8]
layers.1.attention.q_norm.weight F32 [2]
layers.1.attention.k_norm.weight F32 [2]
layers.1.feed_forward.w1.weight F32 [12, 8]
layers.1.feed_forward.w2.weight F32 [8, 12]
layers.1.feed_forward.w3.weight F32 [12, 8]
layers.1.attention_norm.weight F32 [8]
layers.1.ffn_norm.weight F32 [8]
norm.weight F32 [8]
lm_head.weight F32 [10, 8]
)");
}

TEST_CASE("DeepSeek-V3 has latent attention, dense layers first, then experts") {
  const std::vector<std::string> fields =
      WithFields(kSmall, {"mla.kv_lora_rank=6", "mla.qk_nope_head_dim=4", "mla.qk_rope_head_dim=2",
                          "mla.v_head_dim=3", "moe.num_experts=5", "moe.top_k=2",
                          "moe.moe_hidden_dim=7", "moe.num_shared_experts=2"});
  CHECK_EQ(Listing(ConfigOfModel("deepseek_v3", WithFields(fields, {"mla.q_lora_rank=9"})), 0),
           R"(tok_embeddings.weight F32 [10, 8]
layers.0.attention.wq_a.weight F32 [9, 8]
layers.0.attention.q_norm.weight F32 [9]
layers.0.attention.wq_b.weight F32 [24, 9]
layers.0.attention.wkv_a.weight F32 [8, 8]
layers.0.attention.kv_norm.weight F32 [6]
layers.0.attention.wkv_b.weight F32 [28, 6]
layers.0.attention.wo.weight F32 [8, 12]
layers.0.attention_norm.weight F32 [8]
layers.0.ffn_norm.weight F32 [8]
layers.0.feed_forward.w1.weight F32 [12, 8]
layers.0.feed_forward.w2.weight F32 [8, 12]
layers.0.feed_forward.w3.weight F32 [12, 8]
norm.weight F32 [8]
lm_head.weight F32 [10, 8]
)");
  CHECK_EQ(Listing(ConfigOfModel("deepseek_v3", fields), 1), R"(tok_embeddings.weight F32 [10, 8]
layers.1.attention.wq.weight F32 [24, 8]
layers.1.attention.wkv_a.weight F32 [8, 8]
layers.1.attention.kv_norm.weight F32 [6]
layers.1.attention.wkv_b.weight F32 [28, 6]
layers.1.attention.wo.weight F32 [8, 12]
layers.1.attention_norm.weight F32 [8]
layers.1.ffn_norm.weight F32 [8]
layers.1.moe.experts.w1 F32 [5, 7, 8]
layers.1.moe.experts.w2 F32 [5, 8, 7]
layers.1.moe.experts.w3 F32 [5, 7, 8]
layers.1.moe.router.gate.weight F32 [5, 8]
layers.1.moe.shared_experts.w1.weight F32 [14, 8]
layers.1.moe.shared_experts.w2.weight F32 [8, 14]
layers.1.moe.shared_experts.w3.weight F32 [14, 8]
norm.weight F32 [8]
lm_head.weight F32 [10, 8]
buffer layers.1.moe.expert_bias F32 [5]
)");
}

TEST_CASE("without load balancing or shared experts there are no tensors for them") {
  const std::string listing =
      Listing(ConfigOfModel("qwen3", {"dim=8", "n_layers=2", "n_heads=4", "vocab_size=10",
                                      "moe.num_experts=4", "moe.top_k=2", "moe.moe_hidden_dim=4",
                                      "moe.load_balance_coeff=null"}),
              0);
  CHECK_EQ(listing.find("bias"), std::string::npos);
  CHECK_EQ(listing.find("shared"), std::string::npos);
  CHECK_EQ(listing.find("feed_forward"), std::string::npos);
  CHECK_NE(listing.find("layers.0.moe.experts.w1"), std::string::npos);
}

TEST_CASE("T110: first values are drawn as torchtitan draws them") {
  const ModelSpecs specs = SpecsOf(ConfigOfModel(
      "deepseek_v3", WithFields(kSmall, {"mla.q_lora_rank=4", "moe.num_experts=4", "moe.top_k=2",
                                         "moe.moe_hidden_dim=4", "moe.num_shared_experts=1"})));
  const auto check = [&](std::string_view name, double std, double cut) {
    CAPTURE(name);
    const ParameterInit& init = Get(specs, name).init;
    CHECK_EQ(init.std, doctest::Approx(std));
    CHECK_EQ(init.cut, doctest::Approx(cut));
    CHECK_EQ(init.mean, 0.0);
    CHECK_EQ(init.scale, 1.0);
    CHECK_EQ(init.jitter, 0.0);
  };
  check("tok_embeddings.weight", 1.0, 0.0);
  for (const char* name : {"wq_a", "wq_b", "wkv_a", "wkv_b"})
    check(fmt::format("layers.1.attention.{}.weight", name), 0.02, 2.0);
  check("layers.0.feed_forward.w1.weight", 0.02, 2.0);
  check("layers.1.moe.experts.w1", 0.02, 2.0);
  check("layers.1.moe.shared_experts.w1.weight", 0.02, 2.0);
  check("layers.0.attention.wo.weight", 0.02 / std::sqrt(2.0), 2.0);
  for (const char* name :
       {"attention.wo.weight", "moe.experts.w2", "moe.experts.w3", "moe.shared_experts.w2.weight",
        "moe.shared_experts.w3.weight", "moe.router.gate.weight"}) {
    check(fmt::format("layers.1.{}", name), 0.02 / std::sqrt(4.0), 2.0);
  }
  check("lm_head.weight", 1.0 / std::sqrt(8.0), 3.0 / std::sqrt(8.0));
  CHECK_EQ(Get(specs, "norm.weight").init.mean, 1.0);
  CHECK_EQ(Get(specs, "norm.weight").init.std, 0.0);
  CHECK_EQ(specs.buffers.at(0).init.mean, 0.0);
  CHECK_EQ(specs.buffers.at(0).init.jitter, 0.0);
}

TEST_CASE("sharpened: norms and biases spread, inner weights times 4") {
  const ModelSpecs specs = SpecsOf(ConfigOfModel(
      "deepseek_v3", WithFields(kSmall, {"moe.num_experts=4", "moe.top_k=2", "moe.moe_hidden_dim=4",
                                         "init=torchtitan_sharpened"})));
  for (const ParameterSpec& spec : specs.parameters) {
    CAPTURE(spec.name);
    const bool is_norm = spec.name.find("norm.") != std::string::npos;
    const bool is_outer = spec.name == "tok_embeddings.weight" || spec.name == "lm_head.weight";
    CHECK_EQ(spec.init.jitter, is_norm ? 0.1 : 0.0);
    CHECK_EQ(spec.init.scale, is_norm || is_outer ? 1.0 : 4.0);
  }
  CHECK_EQ(specs.buffers.at(0).init.jitter, 0.05);
}

TEST_CASE("models of known names have the known numbers of parameters") {
  const auto count = [](std::string_view model, const std::vector<std::string>& fields) {
    int64_t total = 0;
    for (const ParameterSpec& spec : SpecsOf(ConfigOfModel(model, fields)).parameters)
      total += spec.elements();
    return total;
  };
  // As published with the weights of Llama-3.1-8B and 405B, Qwen3-0.6B and 30B-A3B, and
  // DeepSeek-V2-Lite; DeepSeek-V3's without multi-token prediction.
  CHECK_EQ(count("llama3", {"dim=4096", "n_layers=32", "n_heads=32", "n_kv_heads=8",
                            "vocab_size=128256", "multiple_of=1024", "ffn_dim_multiplier=1.3"}),
           8'030'261'248);
  CHECK_EQ(count("llama3", {"dim=16384", "n_layers=126", "n_heads=128", "n_kv_heads=8",
                            "vocab_size=128256", "multiple_of=4096", "ffn_dim_multiplier=1.2"}),
           405'853'388'800);
  CHECK_EQ(count("qwen3", {"dim=1024", "n_layers=28", "n_heads=16", "n_kv_heads=8", "head_dim=128",
                           "vocab_size=151936", "hidden_dim=3072", "enable_weight_tying=true"}),
           596'049'920);
  CHECK_EQ(count("qwen3", {"dim=2048", "n_layers=48", "n_heads=32", "n_kv_heads=4", "head_dim=128",
                           "vocab_size=151936", "moe.num_experts=128", "moe.top_k=8",
                           "moe.moe_hidden_dim=768"}),
           30'532'122'624);
  CHECK_EQ(count("deepseek_v3", {"dim=2048", "n_layers=27", "n_heads=16", "vocab_size=102400",
                                 "hidden_dim=10944", "moe.num_experts=64", "moe.top_k=6",
                                 "moe.moe_hidden_dim=1408", "moe.num_shared_experts=2"}),
           15'706'484'224);
  CHECK_EQ(count("deepseek_v3",
                 {"dim=7168", "n_layers=61", "n_dense_layers=3", "n_heads=128", "vocab_size=129280",
                  "hidden_dim=18432", "mla.q_lora_rank=1536", "moe.num_experts=256", "moe.top_k=8",
                  "moe.moe_hidden_dim=2048", "moe.num_shared_experts=1"}),
           671'026'404'352);
}

}  // namespace
}  // namespace strata

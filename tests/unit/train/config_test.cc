#include "runtime/config/config.h"

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::TempDir;

// Every field that llama3 takes, none with its default.
constexpr std::string_view kFullToml = R"(
model = "llama3"
steps = 7
init = "torchtitan_sharpened"
norm_eps = 1e-6
qk_norm = false
dim = 96
n_layers = 5
n_heads = 6
n_kv_heads = 3
head_dim = 20
vocab_size = 300
hidden_dim = 77
multiple_of = 16
ffn_dim_multiplier = 1.3
enable_weight_tying = true
seq_len = 48
batch_size = 2
seed = 12
_note = "ignored"

[optimizer]
name = "AdamW"
lr = 3e-3
beta1 = 0.8
beta2 = 0.99
eps = 1e-6
weight_decay = 0
max_grad_norm = 0.5

[rope]
theta = 10000
backend = "cos_sin"
scaling = "none"
max_seq_len = 64
scaling_factor = 4.0
low_freq_factor = 1.5
high_freq_factor = 5.0
original_max_position_embeddings = 128

[_derived]
anything = [1, 2]
)";

constexpr std::string_view kFullJson = R"({
 "model": "llama3", "steps": 7, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": false,
 "dim": 96, "n_layers": 5, "n_heads": 6, "n_kv_heads": 3, "head_dim": 20, "vocab_size": 300,
 "hidden_dim": 77, "multiple_of": 16, "ffn_dim_multiplier": 1.3, "enable_weight_tying": true,
 "seq_len": 48, "batch_size": 2, "seed": 12, "moe": null, "mla": null, "_note": [{"dim": 1}],
 "optimizer": {"name": "AdamW", "lr": 3e-3, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6,
               "weight_decay": 0, "max_grad_norm": 0.5},
 "rope": {"theta": 10000, "backend": "cos_sin", "scaling": "none", "max_seq_len": 64,
          "scaling_factor": 4.0, "low_freq_factor": 1.5, "high_freq_factor": 5.0,
          "original_max_position_embeddings": 128, "_why": "x"},
 "_derived": {"anything": {"dim": [1, {"dim": 2}]}}
})";

constexpr std::string_view kShortToml = R"(
model = "llama3"
dim = 64
n_layers = 2
n_heads = 4
vocab_size = 256
steps = 3
seq_len = 32
batch_size = 4
)";

TrainConfig ParseOrDie(std::string_view text, ConfigFormat format,
                       const std::vector<std::string>& overrides = {}) {
  const Result<TrainConfig> config = ParseTrainConfig(text, format, "c", overrides);
  REQUIRE_OK(config);
  return *config;
}

void CheckFull(const TrainConfig& config) {
  CHECK_EQ(config.model, ModelFamily::kLlama3);
  CHECK_EQ(config.steps, 7);
  CHECK_EQ(config.init, InitScheme::kTorchTitanSharpened);
  CHECK_EQ(config.norm_eps, 1e-6);
  CHECK_EQ(config.dim, 96);
  CHECK_EQ(config.n_layers, 5);
  CHECK_EQ(config.n_heads, 6);
  CHECK_EQ(config.n_kv_heads, 3);
  CHECK_EQ(config.head_dim, 20);
  CHECK_EQ(config.vocab_size, 300);
  CHECK_EQ(config.hidden_dim, 77);
  CHECK_EQ(config.multiple_of, 16);
  CHECK_EQ(config.ffn_dim_multiplier, 1.3);
  CHECK(config.enable_weight_tying);
  CHECK_EQ(config.seq_len, 48);
  CHECK_EQ(config.batch_size, 2);
  CHECK_EQ(config.seed, 12);
  CHECK_EQ(config.optimizer.lr, 3e-3);
  CHECK_EQ(config.optimizer.beta1, 0.8);
  CHECK_EQ(config.optimizer.beta2, 0.99);
  CHECK_EQ(config.optimizer.eps, 1e-6);
  CHECK_EQ(config.optimizer.weight_decay, 0.0);
  CHECK_EQ(config.optimizer.max_grad_norm, 0.5);
  CHECK_EQ(config.rope.theta, 10000.0);
  CHECK_EQ(config.rope.backend, RopeBackend::kCosSin);
  CHECK_EQ(config.rope.scaling, RopeScaling::kNone);
  CHECK_EQ(config.rope.max_seq_len, 64);
  CHECK_EQ(config.rope.scaling_factor, 4.0);
  CHECK_EQ(config.rope.low_freq_factor, 1.5);
  CHECK_EQ(config.rope.high_freq_factor, 5.0);
  CHECK_EQ(config.rope.original_max_position_embeddings, 128);
}

TEST_CASE("a TOML configuration sets every field") {
  CheckFull(ParseOrDie(kFullToml, ConfigFormat::kToml));
}

TEST_CASE("a JSON configuration sets the same fields") {
  CheckFull(ParseOrDie(kFullJson, ConfigFormat::kJson));
}

TEST_CASE("fields that are left out get torchtitan's defaults") {
  const TrainConfig config = ParseOrDie(kShortToml, ConfigFormat::kToml);
  CHECK_EQ(config.n_kv_heads, 4);
  CHECK_EQ(config.head_dim, 16);
  CHECK_EQ(config.rope.max_seq_len, 32);
  CHECK_EQ(config.rope.theta, 500000.0);
  CHECK_EQ(config.rope.scaling, RopeScaling::kLlama);
  CHECK_EQ(config.rope.scaling_factor, 8.0);
  CHECK_EQ(config.rope.original_max_position_embeddings, 8192);
  CHECK_EQ(config.init, InitScheme::kTorchTitan);
  CHECK_EQ(config.optimizer.lr, 8e-4);
  CHECK_EQ(config.optimizer.beta2, 0.95);
  CHECK_EQ(config.optimizer.max_grad_norm, 1.0);
  CHECK_FALSE(config.enable_weight_tying);
}

TEST_CASE("each family has defaults of its own") {
  const std::string sizes = R"(
dim = 64
n_layers = 2
n_heads = 4
vocab_size = 256
hidden_dim = 100
steps = 3
seq_len = 32
batch_size = 4
)";
  const TrainConfig qwen = ParseOrDie("model = \"qwen3\"" + sizes, ConfigFormat::kToml);
  CHECK_EQ(qwen.norm_eps, 1e-6);
  CHECK(qwen.qk_norm);
  CHECK_EQ(qwen.rope.theta, 1e6);
  CHECK_EQ(qwen.rope.backend, RopeBackend::kCosSin);
  CHECK_EQ(qwen.rope.scaling, RopeScaling::kNone);
  CHECK_EQ(qwen.rope_dim(), 16);
  CHECK_FALSE(qwen.HasExperts(0));

  const TrainConfig deepseek =
      ParseOrDie("model = \"deepseek_v3\"" + sizes +
                     "[moe]\nnum_experts = 8\ntop_k = 2\nmoe_hidden_dim = 16\n",
                 ConfigFormat::kToml);
  CHECK_EQ(deepseek.norm_eps, 1e-5);
  CHECK_EQ(deepseek.rope.theta, 10'000.0);
  CHECK_EQ(deepseek.rope.backend, RopeBackend::kComplex);
  CHECK_EQ(deepseek.n_kv_heads, 4);
  CHECK_EQ(deepseek.head_dim, 192);
  CHECK_EQ(deepseek.rope_dim(), 64);
  CHECK_EQ(deepseek.mla.kv_lora_rank, 512);
  CHECK_FALSE(deepseek.HasExperts(0));
  CHECK(deepseek.HasExperts(1));
  CHECK_EQ(deepseek.moe->num_shared_experts, 0);
  CHECK_EQ(deepseek.moe->score_func, ScoreFunction::kSigmoid);
  CHECK_EQ(deepseek.moe->num_expert_groups, 0);
  CHECK_EQ(deepseek.moe->load_balance_coeff, 1e-3);
}

TEST_CASE("null is the same as leaving a field out, and turns clipping off") {
  const std::vector<std::string> nulls = {"head_dim=null", "n_kv_heads=null", "hidden_dim=null",
                                          "optimizer.max_grad_norm=null", "rope=null"};
  const TrainConfig config = ParseOrDie(kFullJson, ConfigFormat::kJson, nulls);
  CHECK_EQ(config.head_dim, 16);
  CHECK_EQ(config.n_kv_heads, 6);
  CHECK_EQ(config.hidden_dim, 336);
  CHECK_EQ(config.optimizer.max_grad_norm, std::nullopt);
  CHECK_EQ(config.rope.theta, 500000.0);
}

TEST_CASE("the feed-forward width of each Llama3 is derived as in torchtitan") {
  struct Flavour {
    int64_t dim, n_heads, multiple_of;
    const char* multiplier;
    int64_t hidden_dim;
  };
  // Table of flavours: debugmodel, 1B, 3B, 8B, 70B, 405B.
  for (const Flavour& flavour : {Flavour{256, 16, 256, "null", 768},
                                 {2048, 32, 1024, "1.5", 8192},
                                 {3072, 24, 1024, "1.0", 8192},
                                 {4096, 32, 1024, "1.3", 14336},
                                 {8192, 64, 4096, "1.3", 28672},
                                 {16384, 128, 4096, "1.2", 53248}}) {
    const TrainConfig config =
        ParseOrDie(kShortToml, ConfigFormat::kToml,
                   {fmt::format("dim={}", flavour.dim), fmt::format("n_heads={}", flavour.n_heads),
                    fmt::format("multiple_of={}", flavour.multiple_of),
                    fmt::format("ffn_dim_multiplier={}", flavour.multiplier)});
    CHECK_EQ(config.hidden_dim, flavour.hidden_dim);
  }
}

TEST_CASE("overrides act in order, on tables too, and add fields") {
  const TrainConfig config = ParseOrDie(
      kShortToml, ConfigFormat::kToml,
      {"dim=128", "dim=32", "rope.scaling=none", "rope.theta=1e4", "init=\"torchtitan_sharpened\"",
       "enable_weight_tying=true", "seed=18446744073709551615", "_comment=x"});
  CHECK_EQ(config.dim, 32);
  CHECK_EQ(config.rope.scaling, RopeScaling::kNone);
  CHECK_EQ(config.rope.theta, 1e4);
  CHECK_EQ(config.init, InitScheme::kTorchTitanSharpened);
  CHECK(config.enable_weight_tying);
  CHECK_EQ(config.seed, 18446744073709551615U);
}

TEST_CASE("the format is told by the name, else by the text") {
  const TempDir dir;
  REQUIRE_OK(WriteFile(dir / "c.toml", kFullToml));
  REQUIRE_OK(WriteFile(dir / "c.json", kFullJson));
  REQUIRE_OK(WriteFile(dir / "json", kFullJson));
  REQUIRE_OK(WriteFile(dir / "toml", kFullToml));
  for (const char* name : {"c.toml", "c.json", "json", "toml"}) {
    const Result<TrainConfig> config = LoadTrainConfig(dir / name);
    REQUIRE_OK(config);
    CheckFull(*config);
  }
}

TEST_CASE("the demo's configuration is a small Llama3 for 20 steps") {
  const Result<TrainConfig> config = LoadTrainConfig("configs/demo_llama3.toml");
  REQUIRE_OK(config);
  CHECK_EQ(config->model, ModelFamily::kLlama3);
  CHECK_EQ(config->steps, 20);
  CHECK(config->n_kv_heads < config->n_heads);
}

TEST_CASE("the configurations of the numbers fixtures load as they stand") {
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/numerics")) {
    const std::string path = entry.path() / "config.json";
    if (!std::filesystem::exists(path)) continue;
    CAPTURE(path);
    const Result<TrainConfig> config = LoadTrainConfig(path);
    CHECK_OK(config);
  }
}

TEST_CASE("of every profile_freq steps the last profiler_active are profiled") {
  const ProfilerConfig profiler{
      .enable_profiling = true, .profile_freq = 5, .profiler_warmup = 1, .profiler_active = 2};
  std::vector<int64_t> profiled;
  for (int64_t step = 1; step <= 12; ++step) {
    if (profiler.IsProfiled(step)) profiled.push_back(step);
  }
  CHECK_EQ(profiled, std::vector<int64_t>{4, 5, 9, 10});
  CHECK_FALSE(ProfilerConfig().IsProfiled(10));
}

}  // namespace
}  // namespace strata

#include "bench/shapes.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata::cli {
namespace {

// debugmodel is torchtitan's flavour with shorter sequences, as qwen3, moe and moe-sizes are, with
// fewer layers; 36m a Llama3 of 36 million parameters, 1b one of 1.1 billion. flex attends to a
// sliding window. In moe one product computes all experts; in moe-sizes they compute one by one,
// with data-dependent sizes.
constexpr BenchShape kShapes[] = {
    {.name = "12x16",
     .config = "model=llama3 n_layers=12 dim=16 n_heads=4 n_kv_heads=2 hidden_dim=32 "
               "vocab_size=96 batch_size=2 seq_len=8",
     .is_tiny = true,
     .eager_limit = 0.12},
    {.name = "32x16",
     .config = "model=llama3 n_layers=32 dim=16 n_heads=4 n_kv_heads=2 hidden_dim=32 "
               "vocab_size=96 batch_size=2 seq_len=8",
     .is_tiny = true,
     .eager_limit = 0.12},
    {.name = "12x64",
     .config = "model=llama3 n_layers=12 dim=64 n_heads=4 n_kv_heads=2 hidden_dim=128 "
               "vocab_size=96 batch_size=2 seq_len=16",
     .is_tiny = true,
     .eager_limit = 0.25},
    {.name = "32x64",
     .config = "model=llama3 n_layers=32 dim=64 n_heads=4 n_kv_heads=2 hidden_dim=128 "
               "vocab_size=96 batch_size=2 seq_len=16",
     .is_tiny = true,
     .eager_limit = 0.25},
    {.name = "debugmodel",
     .config = "model=llama3 n_layers=6 dim=256 n_heads=16 hidden_dim=768 vocab_size=2048 "
               "batch_size=4 seq_len=256"},
    {.name = "36m",
     .config = "model=llama3 n_layers=8 dim=512 n_heads=8 hidden_dim=1536 vocab_size=8192 "
               "batch_size=2 seq_len=256"},
    {.name = "flex",
     .config = "model=llama3 n_layers=4 dim=256 n_heads=4 hidden_dim=768 vocab_size=2048 "
               "attn_type=flex flex.window=128 batch_size=1 seq_len=1024"},
    {.name = "qwen3",
     .config = "model=qwen3 n_layers=4 dim=256 n_heads=16 n_kv_heads=8 head_dim=128 "
               "hidden_dim=3072 vocab_size=2048 enable_weight_tying=true batch_size=2 seq_len=128"},
    {.name = "moe",
     .config = "model=deepseek_v3 n_layers=4 dim=256 n_heads=16 hidden_dim=1024 vocab_size=2048 "
               "mla.mscale=0.7 moe.num_experts=8 moe.top_k=3 moe.moe_hidden_dim=256 "
               "moe.num_shared_experts=2 moe.score_func=softmax rope.rope_factor=40 "
               "batch_size=2 seq_len=128"},
    {.name = "moe-sizes",
     .config = "model=deepseek_v3 n_layers=4 dim=256 n_heads=16 hidden_dim=1024 vocab_size=2048 "
               "mla.mscale=0.7 moe.num_experts=8 moe.top_k=3 moe.moe_hidden_dim=256 "
               "moe.num_shared_experts=2 moe.score_func=softmax moe.use_grouped_mm=false "
               "rope.rope_factor=40 batch_size=2 seq_len=128"},
    {.name = "1b",
     .config = "model=llama3 n_layers=16 dim=2048 n_heads=32 n_kv_heads=8 hidden_dim=8192 "
               "vocab_size=32000 batch_size=1 seq_len=2048",
     .needs_gpu = true},
};

Result<const BenchShape*> FindShape(std::string_view name) {
  const auto shape = std::ranges::find(kShapes, name, &BenchShape::name);
  if (shape != std::end(kShapes)) return &*shape;
  std::vector<std::string_view> known;
  for (const BenchShape& one : kShapes)
    known.push_back(one.name);
  return Error("unknown shape '{}': --shape: there are {}", name, fmt::join(known, ", "));
}

}  // namespace

std::span<const BenchShape> BenchShapes() {
  return kShapes;
}

Result<std::vector<const BenchShape*>> FindShapes(const std::vector<std::string>& names) {
  std::vector<const BenchShape*> shapes;
  for (const std::string& name : names) {
    STRATA_TRY(shapes.emplace_back(), FindShape(name));
  }
  return shapes;
}

std::vector<std::string> SettingsOf(const BenchShape& shape, DeviceKind device) {
  std::istringstream words{std::string(shape.config)};
  std::vector<std::string> settings = {"steps=2147483647"};
  for (std::string word; words >> word;)
    settings.push_back(word);
  if (device == DeviceKind::kCuda) {
    settings.emplace_back("device=cuda");
    settings.emplace_back("training.mixed_precision_param=bfloat16");
  }
  return settings;
}

Result<TrainConfig> ConfigOf(const std::vector<std::string>& settings) {
  return ParseTrainConfig("{}", ConfigFormat::kJson, "the benchmark", settings);
}

Result<TrainConfig> ConfigOf(const BenchShape& shape, DeviceKind device) {
  return ConfigOf(SettingsOf(shape, device));
}

}  // namespace strata::cli

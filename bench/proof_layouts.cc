#include "bench/proof_layouts.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/exec_runtime.h"

namespace strata::cli {
namespace {

constexpr std::string_view kTraining = R"(dim = 32
n_heads = 4
vocab_size = 48
steps = 1
seq_len = 16
batch_size = 2
)";
constexpr std::pair<std::string_view, std::string_view> kModels[] = {
    {"llama3", "multiple_of = 16\n"},
    {"qwen3", "n_kv_heads = 4\nhead_dim = 8\nhidden_dim = 48\n"},
    {"deepseek_v3", R"(n_dense_layers = 1
hidden_dim = 48
[mla]
q_lora_rank = 0
kv_lora_rank = 12
qk_nope_head_dim = 8
qk_rope_head_dim = 4
v_head_dim = 8
mscale = 0.7
[moe]
num_experts = 8
top_k = 2
moe_hidden_dim = 16
num_shared_experts = 2
score_func = "softmax"
)"},
};

constexpr ProofLayout kLayouts[] = {
    {.model = "llama3", .dp_replicate = 2},
    {.model = "llama3", .fsdp = 2},
    {.model = "llama3", .fsdp = 4},
    {.model = "llama3", .dp_replicate = 2, .fsdp = 2},
    {.model = "llama3", .tp = 2},
    {.model = "llama3", .fsdp = 2, .tp = 2},
    {.model = "llama3",
     .fsdp = 2,
     .tp = 2,
     .settings = "parallelism.enable_sequence_parallel=false"},
    {.model = "llama3", .fsdp = 3, .tp = 2},
    {.model = "llama3", .fsdp = 2, .cp = 2},
    {.model = "llama3", .fsdp = 2, .cp = 2, .tp = 2},
    {.model = "llama3", .fsdp = 2, .tp = 2, .settings = "compile.memory_policy=full"},
    {.model = "llama3", .fsdp = 2, .settings = "compile.memory_policy=sac_and_offload"},
    {.model = "llama3",
     .fsdp = 2,
     .tp = 2,
     .settings = "loss.name=chunked_cross_entropy loss.num_chunks=2"},
    {.model = "llama3", .fsdp = 2, .tp = 2, .pp = 2, .schedule = "1F1B"},
    {.model = "llama3", .dp_replicate = 2, .fsdp = 2, .pp = 2, .schedule = "ZBVZeroBubble"},
    {.model = "qwen3", .fsdp = 2, .tp = 2},
    {.model = "qwen3", .cp = 2, .tp = 2},
    {.model = "qwen3", .dp_replicate = 2, .fsdp = 2, .settings = "compile.memory_policy=min_cut"},
    {.model = "qwen3", .fsdp = 2, .settings = "parallelism.fsdp_reshard_after_forward=never"},
    {.model = "qwen3",
     .fsdp = 2,
     .pp = 2,
     .schedule = "InterleavedZeroBubble",
     .settings = "enable_weight_tying=true"},
    {.model = "qwen3", .tp = 2, .pp = 2, .schedule = "1F1B"},
    {.model = "qwen3",
     .tp = 2,
     .ep = 2,
     .settings = "moe.num_experts=256 moe.top_k=2 moe.moe_hidden_dim=16 seq_len=32"},
    {.model = "deepseek_v3", .fsdp = 2, .tp = 2},
    {.model = "deepseek_v3", .fsdp = 2, .ep = 2},
    {.model = "deepseek_v3", .fsdp = 4, .ep = 2},
    {.model = "deepseek_v3", .fsdp = 2, .tp = 2, .ep = 2},
    {.model = "deepseek_v3", .fsdp = 2, .tp = 2, .ep = 4},
    {.model = "deepseek_v3", .fsdp = 2, .cp = 2, .ep = 2},
    {.model = "deepseek_v3", .fsdp = 2, .ep = 2, .settings = "compile.memory_policy=full"},
    {.model = "deepseek_v3", .fsdp = 2, .ep = 2, .settings = "compile.ep_overlap.enabled=true"},
    {.model = "deepseek_v3", .fsdp = 2, .ep = 2, .pp = 2, .schedule = "1F1B"},
    {.model = "deepseek_v3", .fsdp = 2, .pp = 2, .schedule = "DualPipeV"},
};

using Degree = std::pair<std::string_view, int64_t>;

std::vector<Degree> DegreesOf(const ProofLayout& layout) {
  std::vector<Degree> degrees = {{"pp", layout.pp},     {"dp_replicate", layout.dp_replicate},
                                 {"fsdp", layout.fsdp}, {"cp", layout.cp},
                                 {"tp", layout.tp},     {"ep", layout.ep}};
  std::erase_if(degrees, [](const Degree& degree) { return degree.second == 1; });
  return degrees;
}

/// Fields of the configuration, as `KEY=VALUE`.
std::vector<std::string> SettingsOf(const ProofLayout& layout) {
  std::vector<std::string> words = {
      fmt::format("n_layers={}", layout.pp > 1 ? 4 : 2),
      fmt::format("parallelism.data_parallel_replicate_degree={}", layout.dp_replicate),
      fmt::format("parallelism.data_parallel_shard_degree={}", layout.fsdp),
      fmt::format("parallelism.context_parallel_degree={}", layout.cp),
      fmt::format("parallelism.tensor_parallel_degree={}", layout.tp),
      fmt::format("parallelism.expert_parallel_degree={}", layout.ep)};
  if (layout.pp > 1) {
    words.push_back(fmt::format("parallelism.pipeline_parallel_degree={}", layout.pp));
    words.push_back(fmt::format("parallelism.pipeline_parallel_schedule={}", layout.schedule));
    words.push_back(fmt::format("parallelism.num_pp_microbatches={}", 2 * layout.pp));
  }
  std::string_view text = layout.settings;
  while (!text.empty()) {
    const size_t end = text.find(' ');
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return words;
}

}  // namespace

std::string ProofLayout::Name() const {
  std::string name(model);
  for (const auto& [axis, size] : DegreesOf(*this))
    name += fmt::format(" {}={}", axis, size);
  for (const std::string_view word : {schedule, settings})
    if (!word.empty()) name += fmt::format(" {}", word);
  return name;
}

std::span<const ProofLayout> ProofLayouts() {
  return kLayouts;
}

Status TraceLayout(const ProofLayout& layout, const std::string& folder, const std::string& trace) {
  std::string text = fmt::format("model = \"{}\"\n{}", layout.model, kTraining);
  for (const auto& [model, fields] : kModels)
    if (model == layout.model) text += fields;
  const std::string config = folder + "/config.toml";
  STRATA_RETURN_IF_ERROR(WriteFile(config, text));
  std::error_code ignored;
  std::filesystem::remove(trace, ignored);
  std::vector<std::string> words = {config, "-o", trace};
  for (const std::string& setting : SettingsOf(layout)) {
    words.emplace_back("--set");
    words.push_back(setting);
  }
  return RunRuntime("trace", words, folder + "/log");
}

}  // namespace strata::cli

#include "runtime/config/names.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr Names kFields[] = {
    {"training.steps", "steps"},
    {"training.max_context_length", "seq_len"},
    {"training.max_norm", "optimizer.max_grad_norm"},
    {"debug.seed", "seed"},
    {"hf_assets_path", "dataloader.tokenizer"},
    // Names of configurations in TOML.
    {"job.dump_folder", "dump_folder"},
    {"job.print_args", "debug.print_config"},
    {"job.print_config", "debug.print_config"},
    {"job.save_config_file", "debug.save_config_file"},
    {"model.name", "model"},
    {"model.flavor", "flavor"},
    {"model.hf_assets_path", "dataloader.tokenizer"},
    {"model.tokenizer_path", "dataloader.tokenizer"},
    {"model.converters", "converters"},
    {"lr_scheduler.lr_min", "lr_scheduler.min_lr_factor"},
    {"training.batch_size", "batch_size"},
    {"training.local_batch_size", "batch_size"},
    {"training.seq_len", "seq_len"},
    {"training.seed", "seed"},
    {"training.deterministic", "debug.deterministic"},
    {"training.debug_moe_force_load_balance", "debug.moe_force_load_balance"},
    {"training.compile", "compile.enable"},
    {"training.dataset", "dataloader.dataset"},
    {"training.dataset_path", "dataloader.dataset_path"},
    {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
    {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
    {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
    {"checkpoint.enable_checkpoint", "checkpoint.enable"},
    {"checkpoint.last_save_model_weights_only", "checkpoint.last_save_model_only"},
    {"checkpoint.model_weights_only", "checkpoint.last_save_model_only"},
};

/// Tables that were renamed with what they contain.
constexpr Names kTables[] = {{"profiling", "profiler"}, {"validation", "validator"}};

/// Keys without an effect on a run.
constexpr std::string_view kNotes[] = {
    "job",
    "job.config_file",
    "job.description",
    "job.use_for_integration_test",
    "model.print_after_conversion",
    "profiling.save_traces_folder",
    "profiling.save_memory_snapshot_folder",
};

/// Names of fields that are several keys now, and what to write instead.
constexpr Names kSplitFields[] = {
    {"training.data_parallel_degree",
     "take 'parallelism.data_parallel_shard_degree' (FSDP), or "
     "'parallelism.data_parallel_replicate_degree' (whole copies)"},
};

constexpr Names kAlternatives[] = {
    {"batch_size", "training.num_tokens_per_microbatch_per_dp_rank"},
    {"training.global_batch_size", "training.num_tokens_per_train_step"},
};

}  // namespace

std::string CanonicalKey(std::string_view name) {
  if (std::ranges::find(kNotes, name) != std::end(kNotes)) return "";
  for (const auto& [other, key] : kFields) {
    if (name == other) return std::string(key);
  }
  for (const auto& [other, table] : kTables) {
    if (name == other) return std::string(table);
    if (name.starts_with(other) && name.substr(other.size()).starts_with('.'))
      return fmt::format("{}{}", table, name.substr(other.size()));
  }
  return std::string(name);
}

std::vector<std::string> OtherNames() {
  std::vector<std::string> names;
  for (const auto& [other, key] : kFields)
    names.emplace_back(other);
  return names;
}

std::string_view AdviceFor(std::string_view name) {
  const auto* const found = std::ranges::find(kSplitFields, name, &Names::first);
  return found == std::end(kSplitFields) ? "" : found->second;
}

std::string_view Alternative(std::string_view key) {
  for (const auto& [one, other] : kAlternatives) {
    if (key == one) return other;
    if (key == other) return one;
  }
  return "";
}

}  // namespace strata

#include "runtime/config/compile.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/memory/overrides.h"
#include "passes/memory/selectors.h"
#include "runtime/config/checks.h"

namespace strata {
namespace {

constexpr std::string_view kAutoParallel = "compile.enable_autoparallel";

void ReadOpenSizes(ConfigReader& reader, CompileConfig& compile) {
  enum class Symbolic : uint8_t { kNone, kBatch, kSeq, kBatchAndSeq };
  Symbolic dims = Symbolic::kNone;
  reader.Read<Symbolic>("compile.symbolic_dims",
                        {{"none", Symbolic::kNone},
                         {"batch", Symbolic::kBatch},
                         {"seq", Symbolic::kSeq},
                         {"batch_and_seq", Symbolic::kBatchAndSeq}},
                        dims);
  compile.symbolic_batch = dims == Symbolic::kBatch || dims == Symbolic::kBatchAndSeq;
  compile.symbolic_seq = dims == Symbolic::kSeq || dims == Symbolic::kBatchAndSeq;
}

/// `layers.*.moe::aten.mm.default | lm_head::aten.mm.default`: what the policy `full` saves.
void ReadSaveOps(ConfigReader& reader, CompileConfig& compile) {
  constexpr std::string_view kKey = "compile.full_recompute_save_ops";
  std::vector<std::string> words;
  reader.ReadWords(kKey, words, '|');
  if (words.empty()) return;
  compile.save_ops = fmt::format("{}", fmt::join(words, "|"));
  if (const auto selectors = ParseSelectors(compile.save_ops); !selectors) {
    reader.Refuse(kKey, selectors.error().message());
  } else if (compile.memory_policy != "full") {
    reader.Refuse(kKey, "it requires compile.memory_policy = 'full', remove it");
  }
}

/// `layers.0.attention::aten.mm.default#2=MUST_RECOMPUTE | …`: tags instead of the policy's.
void ReadOverrides(ConfigReader& reader, CompileConfig& compile) {
  constexpr std::string_view kKey = "compile.memory_overrides";
  std::vector<std::string> words;
  reader.ReadWords(kKey, words, '|');
  if (words.empty()) return;
  compile.memory_overrides = fmt::format("{}", fmt::join(words, "|"));
  const auto overrides = ParseOverrides(compile.memory_overrides);
  if (!overrides) {
    reader.Refuse(kKey, overrides.error().message());
  } else if (compile.memory_policy == "none" || compile.memory_policy == "budget") {
    reader.Refuse(kKey,
                  "it requires a policy that tags by rules: compile.memory_policy = "
                  "'default', 'eager', 'full', 'min_cut' or 'sac_and_offload'");
  } else if (compile.memory_policy != "sac_and_offload" &&
             compile.memory_overrides.find("MUST_CPU_OFFLOAD") != std::string::npos) {
    reader.Refuse(kKey, "offloading requires compile.memory_policy = 'sac_and_offload'");
  }
}

/// Overlap of experts' communication with their work.
void ReadExpertOverlap(ConfigReader& reader, ExpertOverlapConfig& overlap) {
  enum class Dim : uint8_t { kBatch, kSeq };
  enum class Strategy : uint8_t { kGraph, kEager };
  enum class Modules : uint8_t { kLayers, kExperts };
  Dim dim = Dim::kBatch;
  Strategy strategy = Strategy::kGraph;
  Modules modules = Modules::kLayers;
  reader.Table("compile.ep_overlap");
  reader.Read<Dim>("compile.ep_overlap.chunk_dim", {{"batch", Dim::kBatch}, {"seq", Dim::kSeq}},
                   dim);
  reader.Read<Strategy>("compile.ep_overlap.strategy",
                        {{"graph", Strategy::kGraph}, {"eager", Strategy::kEager}}, strategy);
  reader.Read<Modules>("compile.ep_overlap.module_fqn",
                       {{"layers.*", Modules::kLayers}, {"layers.*.moe", Modules::kExperts}},
                       modules);
  if (dim == Dim::kSeq && modules != Modules::kExperts) {
    reader.Refuse("compile.ep_overlap.chunk_dim",
                  "a part of a sequence cannot pass attention alone, take module_fqn = "
                  "'layers.*.moe' or 'batch'");
  }
  bool any = false;  // chunks have no collectives of gradients that could come before the sum
  reader.Read("compile.ep_overlap.disable_early_grad_accumulation", any);
  reader.Read("compile.ep_overlap.enabled", overlap.enabled);
  reader.Read("compile.ep_overlap.num_chunks", overlap.num_chunks);
  reader.Read("compile.ep_overlap.topology", overlap.topology);
  if (overlap.num_chunks < 2)
    reader.Refuse("compile.ep_overlap.num_chunks", "one chunk overlaps with nothing, take 2");
  overlap.along_seq = dim == Dim::kSeq;
  overlap.is_eager = strategy == Strategy::kEager;
  overlap.whole_layers = modules == Modules::kLayers;
}

void ReadPassChoices(ConfigReader& reader, CompileConfig& compile) {
  bool any = false;  // gates what several ranks do
  reader.Read("compile.enable", any);
  reader.Fix("compile.mode", "aot_fx_trace", "every run is traced ahead, take 'aot_fx_trace'");
  reader.Fix("compile.backend", "aot_eager",
             "the pass fuse makes kernels, which is the default; take 'aot_eager'");
  reader.Fix("compile.components", std::vector<std::string>{"model", "loss"},
             "model and loss are one graph, take [\"model\", \"loss\"]");
  reader.Fix("compile.pass_pipeline", "default",
             "compile.passes names the passes of a run, remove it");
  reader.Fix("compile.debug_graph_passes", false,
             "--trace records each pass with its times and differences, take false");
  reader.Read<KernelScope>("compile.inductor_compilation",
                           {{"regional", KernelScope::kRegional},
                            {"full", KernelScope::kFull},
                            {"standalone", KernelScope::kStandalone},
                            {"autoparallel_backend", KernelScope::kOverlap}},
                           compile.inductor);
  if (compile.inductor == KernelScope::kOverlap) compile.memory_policy = "default";
  if (compile.inductor == KernelScope::kFull || compile.inductor == KernelScope::kStandalone) {
    compile.memory_policy = "min_cut";
    compile.is_memory_policy_implied = true;
  }
  reader.Read("compile.precompile_artifact_dir", compile.precompile_artifact_dir);
  reader.Fix("compile.numerics_changing_optim", false,
             "take false, and compile.passes = \"dce,canonicalize,fuse{numerics=fast}\"");
}

/// A pipeline, or an array of passes.
void ReadPasses(ConfigReader& reader, CompileConfig& compile) {
  std::vector<std::string> passes;
  reader.ReadPaths("compile.passes", passes);
  if (!passes.empty()) compile.passes = fmt::format("{}", fmt::join(passes, ","));
}

/// What the policy `sac_and_offload` does.
void ReadOffload(ConfigReader& reader, CompileConfig& compile) {
  const auto read = [&](std::string_view name, auto& target) {
    const std::string key = fmt::format("compile.cpu_offload_{}", name);
    const auto preset = target;
    reader.Read(key, target);
    if (target < 0) {
      reader.Refuse(key, fmt::format("{} must be at least 0", target));
    } else if (target != preset && compile.memory_policy != "sac_and_offload" &&
               compile.memory_policy != "budget") {
      reader.Refuse(key, "it requires compile.memory_policy = 'sac_and_offload', remove it");
    }
  };
  read("prefetch_n_layers", compile.offload_prefetch);
  read("defer_n_layers", compile.offload_defer);
  read("budget_gb", compile.offload_budget_gb);
  reader.Read("compile.cpu_offload_folder", compile.offload_folder);
}

/// torchtitan's names for policies.
void ReadRecompute(ConfigReader& reader, CompileConfig& compile) {
  constexpr std::string_view kMode = "activation_checkpoint.mode";
  std::string_view policy;
  reader.Table("activation_checkpoint");
  reader.Read<std::string_view>(
      kMode,
      {{"none", ""}, {"selective", "default"}, {"full", "full"}, {"memory_budget", "min_cut"}},
      policy);
  const bool is_contradicted =
      reader.Has("compile.memory_policy") && compile.memory_policy != policy;
  if (!policy.empty() && is_contradicted) {
    reader.Refuse(kMode,
                  fmt::format("it is compile.memory_policy = '{}', remove one of them", policy));
  } else if (!policy.empty()) {
    compile.memory_policy = std::string(policy);
  }
  constexpr std::string_view kOption = "activation_checkpoint.selective_ac_option";
  constexpr std::string_view kShare = "activation_checkpoint.memory_budget";
  if (policy == "default") {
    reader.Fix(kOption, "op", "operators are chosen, not layers by number, take 'op'");
  } else {
    reader.Ignore(kOption);
  }
  if (policy == "min_cut") {
    reader.Fix(kShare, 1.0,
               "take 1, or compile.memory_policy = 'budget' and compile.memory_budget_bytes");
  } else {
    reader.Ignore(kShare);
  }
  for (const std::string_view key :
       {"early_stop", "preserve_rng_state", "determinism_check", "debug",
        "visualize_memory_budget_pareto", "per_op_sac_force_recompute_mm_shapes_by_fqns"})
    reader.Ignore(fmt::format("activation_checkpoint.{}", key));
}

void ReadBudget(ConfigReader& reader, CompileConfig& compile) {
  constexpr std::string_view kBytes = "compile.memory_budget_bytes";
  const bool has_budget = compile.memory_policy == "budget";
  constexpr std::string_view kOffload = "compile.memory_budget_offload";
  reader.Read(kBytes, compile.memory_budget_bytes);
  reader.Read(kOffload, compile.memory_budget_offload);
  if (!has_budget && !compile.memory_budget_offload)
    reader.Refuse(kOffload, "it requires compile.memory_policy = 'budget', remove it");
  constexpr std::string_view kTimes = "compile.memory_budget_times";
  reader.Read(kTimes, compile.memory_budget_times);
  if (!has_budget && !compile.memory_budget_times.empty())
    reader.Refuse(kTimes, "it requires compile.memory_policy = 'budget', remove it");
  if (has_budget && !reader.Has(kBytes)) {
    reader.Refuse("compile.memory_policy", "give compile.memory_budget_bytes, too");
  } else if (has_budget && compile.memory_budget_bytes < 1) {
    reader.Refuse(kBytes, fmt::format("{} must be at least 1", compile.memory_budget_bytes));
  } else if (!has_budget && reader.Has(kBytes)) {
    reader.Refuse(kBytes, "it requires compile.memory_policy = 'budget', remove it");
  }
}

void ReadMemory(ConfigReader& reader, CompileConfig& compile) {
  for (const char* key : {"compile.memory_policy", "activation_checkpoint.mode"}) {
    if (!reader.Has(key)) continue;
    compile.is_memory_policy_implied = false;
    if (compile.inductor != KernelScope::kOverlap) compile.memory_policy = "none";
  }
  std::string_view policy = compile.memory_policy;
  reader.Read<std::string_view>("compile.memory_policy",
                                {{"budget", "budget"},
                                 {"default", "default"},
                                 {"eager", "eager"},
                                 {"full", "full"},
                                 {"min_cut", "min_cut"},
                                 {"none", "none"},
                                 {"sac_and_offload", "sac_and_offload"}},
                                policy);
  compile.memory_policy = std::string(policy);
  ReadRecompute(reader, compile);
  ReadSaveOps(reader, compile);
  ReadOverrides(reader, compile);
  ReadOffload(reader, compile);
  ReadBudget(reader, compile);
}

void ReadOverlap(ConfigReader& reader, CompileConfig& compile) {
  reader.Read("compile.enable_fsdp_ag_rs_overlap", compile.separate_gathers);
  reader.Read("compile.enable_fsdp_dense_region_overlap", compile.dense_regions);
  reader.Read("compile.enable_async_tensor_parallel", compile.async_tensor_parallel);
  reader.Read(kAutoParallel, compile.autoparallel);
  constexpr std::string_view kTopology = "compile.autoparallel_topology";
  reader.Read(kTopology, compile.autoparallel_topology);
  const bool is_used = compile.autoparallel || compile.inductor == KernelScope::kOverlap;
  if (!is_used && reader.Has(kTopology))
    reader.Refuse(kTopology, "it requires compile.enable_autoparallel = true, remove it");
}

}  // namespace

Status CheckExpertOverlap(const ConfigReader& reader, const TrainConfig& config) {
  const ExpertOverlapConfig& overlap = config.compile.ep_overlap;
  if (!overlap.enabled) return Ok();
  constexpr std::string_view kEnabled = "compile.ep_overlap.enabled";
  if (!config.moe) return Impossible(reader, kEnabled, "the model has no experts, take false");
  const int64_t size =
      overlap.along_seq ? config.seq_len : config.batch_size / config.parallelism.data_ranks();
  const std::string_view of = overlap.along_seq ? "seq_len" : "batch_size";
  if (size < overlap.num_chunks) {
    return Impossible(reader, "compile.ep_overlap.num_chunks",
                      "{} chunks are more than {} {}, take fewer", overlap.num_chunks, of, size);
  }
  if (overlap.is_eager) return Ok();
  if (config.parallelism.tensor > 1) {
    return Impossible(
        reader, "compile.ep_overlap.strategy",
        "Graph EP chunking does not support tensor_parallel_degree > 1, take 'eager'");
  }
  if (config.parallelism.context > 1) {
    return Impossible(
        reader, "compile.ep_overlap.strategy",
        "Graph EP chunking does not support context_parallel_degree > 1, take 'eager'");
  }
  if (size % overlap.num_chunks == 0) return Ok();
  return Impossible(reader, "compile.ep_overlap.num_chunks",
                    "{} chunks do not divide {} {}, take another, or strategy = 'eager'",
                    overlap.num_chunks, of, size);
}

Status CheckOverlapPolicy(const ConfigReader& reader, const TrainConfig& config) {
  if (config.compile.inductor != KernelScope::kOverlap) return Ok();
  constexpr std::string_view kScope = "compile.inductor_compilation";
  if (config.parallelism.mesh.num_ranks() == 1)
    return Impossible(reader, kScope, "there are no collectives on one rank, take 'full'");
  if (config.parallelism.pipeline.degree > 1)
    return Impossible(reader, kScope, "the order of a pipeline is its schedule, take 'full'");
  for (const std::string_view key :
       {"compile.passes", "compile.precompile_artifact_dir", "compile.enable_fsdp_ag_rs_overlap",
        "compile.enable_fsdp_dense_region_overlap", "compile.ep_overlap.enabled"}) {
    if (reader.Has(key)) {
      return Impossible(reader, key,
                        "compile.inductor_compilation = 'autoparallel_backend' has passes of its "
                        "own, remove one of them");
    }
  }
  return Ok();
}

Status CheckAutoParallel(const ConfigReader& reader, const TrainConfig& config) {
  if (!config.compile.autoparallel) return Ok();
  const ParallelismConfig& parallelism = config.parallelism;
  if (parallelism.mesh.num_ranks() == 1)
    return Impossible(reader, kAutoParallel, "there is nothing to place on one rank, take false");
  if (parallelism.pipeline.degree > 1) {
    return Impossible(reader, kAutoParallel,
                      "stages of a pipeline take a plan that strata place wrote, take false and "
                      "parallelism.plan");
  }
  if (!parallelism.plan.empty()) {
    return Impossible(reader, "parallelism.plan",
                      "compile.enable_autoparallel finds the plan, remove one of them");
  }
  for (const std::string_view key :
       {"parallelism.enable_sequence_parallel", "parallelism.disable_loss_parallel"}) {
    if (reader.Has(key))
      return Impossible(reader, key, "compile.enable_autoparallel decides it, remove it");
  }
  return Ok();
}

Status CheckAsyncTensor(const ConfigReader& reader, const TrainConfig& config) {
  if (!config.compile.async_tensor_parallel || config.parallelism.tensor > 1) return Ok();
  return Impossible(reader, "compile.enable_async_tensor_parallel",
                    "there is no tensor parallelism on one rank, take false");
}

void ReadCompile(ConfigReader& reader, CompileConfig& compile) {
  reader.Table("compile");
  ReadOpenSizes(reader, compile);
  reader.Read("compile.enable_passes", compile.enable_passes);
  reader.ReadWords("compile.disable_passes", compile.disable_passes);
  ReadPasses(reader, compile);
  ReadPassChoices(reader, compile);
  ReadMemory(reader, compile);
  ReadOverlap(reader, compile);
  ReadExpertOverlap(reader, compile.ep_overlap);
}

}  // namespace strata

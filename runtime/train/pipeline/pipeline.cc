#include "runtime/train/pipeline/pipeline.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "passes/pipeline/schedule/schedule.h"
#include "runtime/train/pipeline/stage_owners.h"

namespace strata {
namespace {

using Passes = std::vector<std::unique_ptr<Pass>>;

Status CheckNames(const std::vector<std::string>& disabled, const PassRegistry& registry) {
  for (const std::string& name : disabled) {
    if (registry.Find(name) != nullptr) continue;
    std::vector<std::string> names;
    for (const PassRegistry::Entry& entry : registry.entries())
      names.push_back(entry.name);
    return Error("no pass '{}': compile.disable_passes: name some of {}{}", name,
                 fmt::join(names, ", "), DidYouMean(name, names));
  }
  return Ok();
}

bool Has(const Passes& passes, std::string_view name) {
  return std::ranges::any_of(
      passes, [&](const std::unique_ptr<Pass>& pass) { return pass->name() == name; });
}

/// The plan of the configuration, or of its model family, which ranks that share layers or experts
/// need. Models of users have no family: the cheapest that a search finds.
std::string PlanOf(const TrainConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  if (config.compile.autoparallel) return "auto";
  const bool shares_layers = parallelism.tensor > 1 || parallelism.expert > 1;
  if (!parallelism.plan.empty() || !shares_layers) return parallelism.plan;
  if (config.HasOwnModel()) return "auto";
  return std::string(Name(config.model));
}

/// Whose costs searches and orders of collectives follow.
std::string TopologyOf(const TrainConfig& config) {
  const std::string& topology = config.compile.autoparallel_topology;
  if (!topology.empty()) return topology;
  return config.device == DeviceKind::kCpu ? "cpu" : "h100";
}

/// What the search for a plan must know, each option with a comma before it.
std::string SearchOptions(const TrainConfig& config) {
  const CompileConfig& compile = config.compile;
  std::string options = fmt::format(",topology=\"{}\"", TopologyOf(config));
  const bool is_priced = compile.memory_policy == "default" || compile.memory_policy == "eager" ||
                         compile.memory_policy == "full" || compile.memory_policy == "min_cut";
  if (is_priced) options += ",memory_policy=" + compile.memory_policy;
  return options;
}

/// `place{mesh="fsdp=2"},lower`.
std::string PlacementText(const TrainConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  const std::string plan = PlanOf(config);
  std::string options = fmt::format("mesh=\"{}\"", parallelism.stage_mesh.Text());
  if (!plan.empty()) options += fmt::format(",plan=\"{}\"", plan);
  if (plan == "auto") options += SearchOptions(config);
  if (parallelism.reshard == ReshardAfterForward::kNever) options += ",reshard_after_forward=false";
  if (parallelism.reshard == ReshardAfterForward::kAlways)
    options += ",reshard_outside_blocks=true";
  if (parallelism.tensor > 1 && !parallelism.sequence_parallel)
    options += ",sequence_parallel=false";
  if (parallelism.tensor > 1 && parallelism.disable_loss_parallel)
    options += ",loss_parallel=false";
  return fmt::format("place{{{}}},lower", options);
}

/// All ranks run one graph, which these passes make of the global one.
Status InsertPlacement(const TrainConfig& config, const PassRegistry& registry, Passes& passes) {
  if (config.parallelism.stage_mesh.num_ranks() == 1 || Has(passes, "place")) return Ok();
  STRATA_TRY(Passes placement, ParsePipeline(PlacementText(config), registry));
  const auto after_cleanup = std::ranges::find_if(passes, [](const std::unique_ptr<Pass>& pass) {
    return pass->name() != "dce" && pass->name() != "canonicalize";
  });
  passes.insert(after_cleanup, std::make_move_iterator(placement.begin()),
                std::make_move_iterator(placement.end()));
  return Ok();
}

/// Kernels have no parts that could be recomputed or moved alone.
void InsertBeforeKernels(Passes inserted, Passes& passes) {
  const auto before_kernels = std::ranges::find_if(passes, [](const std::unique_ptr<Pass>& pass) {
    return pass->name() == "place-casts" || pass->name() == "fuse" || pass->name() == "cuda-graph";
  });
  passes.insert(before_kernels, std::make_move_iterator(inserted.begin()),
                std::make_move_iterator(inserted.end()));
}

/// Options of `tag-memory`, each with a comma before it.
std::string TagOptions(const TrainConfig& config) {
  const CompileConfig& compile = config.compile;
  std::string options;
  if (!compile.save_ops.empty()) options += fmt::format(",save=\"{}\"", compile.save_ops);
  if (!compile.memory_overrides.empty())
    options += fmt::format(",override=\"{}\"", compile.memory_overrides);
  if (config.parallelism.reshard == ReshardAfterForward::kNever) options += ",keep_unsharded=true";
  return options;
}

/// `tag-memory{policy=full},recompute`.
std::string MemoryText(const TrainConfig& config) {
  const CompileConfig& compile = config.compile;
  const std::string layers =
      fmt::format("prefetch={},defer={}", compile.offload_prefetch, compile.offload_defer);
  if (compile.memory_policy == "budget") {
    const std::string times = compile.memory_budget_times.empty()
                                  ? ""
                                  : fmt::format(",times=\"{}\"", compile.memory_budget_times);
    if (!compile.memory_budget_offload) {
      return fmt::format("budget{{bytes={},offload=false{}}},recompute",
                         compile.memory_budget_bytes, times);
    }
    return fmt::format("budget{{bytes={},{}{}}},recompute,offload{{{}}}",
                       compile.memory_budget_bytes, layers, times, layers);
  }
  if (compile.memory_policy == "sac_and_offload") {
    return fmt::format(
        "tag-memory{{policy=default{}}},tag-offload{{budget_gb={}}},recompute,"
        "offload{{{}}}",
        TagOptions(config), compile.offload_budget_gb, layers);
  }
  return fmt::format("tag-memory{{policy={}{}}},recompute", compile.memory_policy,
                     TagOptions(config));
}

/// After cleanup and placement.
Status InsertMemory(const TrainConfig& config, const PassRegistry& registry, Passes& passes) {
  const CompileConfig& compile = config.compile;
  if (compile.memory_policy == "none") return Ok();
  const bool is_replaced = !compile.enable_passes || Has(passes, "tag-memory") ||
                           Has(passes, "budget") || Has(passes, "recompute");
  if (compile.is_memory_policy_implied && is_replaced) return Ok();
  if (!compile.enable_passes) {
    return Error(
        "keys of the configuration contradict each other: compile.memory_policy: "
        "compile.enable_passes is false, take one of them out");
  }
  if (Has(passes, "tag-memory")) {
    return Error(
        "pass and configuration contradict each other: tag-memory: compile.memory_policy is '{}', "
        "take one of them out",
        compile.memory_policy);
  }
  const bool offloads = compile.memory_policy == "sac_and_offload" ||
                        (compile.memory_policy == "budget" && compile.memory_budget_offload);
  if (config.parallelism.pipeline.degree > 1 && offloads) {
    return Error(
        "keys of the configuration contradict each other: compile.memory_policy: nothing is "
        "offloaded between stages of a pipeline, take 'default'");
  }
  STRATA_TRY(Passes memory, ParsePipeline(MemoryText(config), registry));
  InsertBeforeKernels(std::move(memory), passes);
  return Ok();
}

constexpr std::string_view kSplitFsdp = "split-fsdp";

/// `,multiplex-overlaps{pairs="0-3;3-0"}`, if the schedule overlaps these.
std::string MultiplexText(const PipelineSchedule& schedule) {
  std::string pairs;
  for (const auto& [forward, backward] : OverlapsOf(schedule))
    pairs += fmt::format("{}{}-{}", pairs.empty() ? "" : ";", forward, backward);
  return pairs.empty() ? "" : fmt::format(",multiplex-overlaps{{pairs=\"{}\"}}", pairs);
}

/// Options of `split-stages`.
std::string StagesText(const PipelineConfig& pipeline) {
  if (!pipeline.modules.empty()) {
    std::vector<std::string> stages;
    for (const std::vector<std::string>& modules : pipeline.modules)
      stages.push_back(fmt::format("{}", fmt::join(modules, ",")));
    return fmt::format("modules=\"{}\"", fmt::join(stages, ";"));
  }
  std::string text = fmt::format("stages={}", pipeline.num_stages);
  if (!pipeline.balance)
    return text +
           fmt::format(",first_less={},last_less={}", pipeline.first_less, pipeline.last_less);
  if (!pipeline.times.empty()) text += fmt::format(",times=\"{}\"", pipeline.times);
  return text + ",balance=true";
}

/// `split-stages{stages=4},split-backward,split-optimizer{ranks=2}`.
Result<std::string> PipelineText(const TrainConfig& config) {
  const PipelineConfig& pipeline = config.parallelism.pipeline;
  STRATA_TRY(const ScheduleKind kind, FindScheduleKind(pipeline.schedule));
  STRATA_TRY(const PipelineSchedule schedule, ScheduleOf(pipeline));
  const std::vector<std::string>& disabled = config.compile.disable_passes;
  const bool splits_fsdp = config.parallelism.stage_mesh.num_ranks() > 1 &&
                           std::ranges::find(disabled, kSplitFsdp) == disabled.end();
  return fmt::format(
      "{}split-stages{{{}}},{}split-backward,{}split-optimizer{{ranks={},style={}}}{}",
      splits_fsdp ? "dedup-unshards{across_phases=true}," : "", StagesText(pipeline),
      splits_fsdp ? "split-fsdp," : "", SplitsBackward(schedule) ? "split-weight-gradients," : "",
      pipeline.degree, ToString(kind.style), MultiplexText(schedule));
}

/// What places and recomputes sees the whole step, what makes regions and kernels the parts that
/// run.
Status InsertPipeline(const TrainConfig& config, const PassRegistry& registry, Passes& passes) {
  if (config.parallelism.pipeline.degree == 1 || Has(passes, "split-stages")) return Ok();
  STRATA_TRY(const std::string text, PipelineText(config));
  STRATA_TRY(Passes split, ParsePipeline(text, registry));
  InsertBeforeKernels(std::move(split), passes);
  return Ok();
}

/// `reassign-groups,bucket-transformer-blocks`.
std::string CommunicationText(const TrainConfig& config) {
  const CompileConfig& compile = config.compile;
  std::string text = "bucket-transformer-blocks";
  if (compile.inductor == KernelScope::kOverlap)
    text = fmt::format("bucket-by-size,overlap-collectives{{topology=\"{}\"}}", TopologyOf(config));
  if (compile.separate_gathers) text = "reassign-groups," + text;
  return compile.async_tensor_parallel ? text + ",async-tensor-parallel" : text;
}

/// `schedule-dense-regions`, which needs the final order of token exchanges.
std::string DenseRegionsText(const CompileConfig& compile) {
  const ExpertOverlapConfig& overlap = compile.ep_overlap;
  const bool is_in_chunks = overlap.enabled && (overlap.is_eager || overlap.whole_layers);
  return compile.dense_regions && !is_in_chunks ? "schedule-dense-regions" : "";
}

/// Appends passes before what makes kernels, without those that the pipeline has already.
Status Insert(const std::string& text, const PassRegistry& registry, Passes& passes) {
  if (text.empty()) return Ok();
  STRATA_TRY(Passes inserted, ParsePipeline(text, registry));
  std::erase_if(inserted,
                [&](const std::unique_ptr<Pass>& pass) { return Has(passes, pass->name()); });
  InsertBeforeKernels(std::move(inserted), passes);
  return Ok();
}

std::string_view ModulesOf(const ExpertOverlapConfig& overlap) {
  return overlap.whole_layers ? "layers.*" : "layers.*.moe";
}

/// `ep-chunk{module_fqn="layers.*.moe"}`, or `label-chunks` where the program has chunks.
std::string ChunkText(const ExpertOverlapConfig& overlap, bool exchanges) {
  if (!overlap.InGraph()) return "label-chunks";
  return fmt::format("ep-chunk{{chunk_dim={},module_fqn=\"{}\",num_chunks={}{}}}",
                     overlap.along_seq ? "seq" : "batch", ModulesOf(overlap), overlap.num_chunks,
                     exchanges ? ",require_all_to_all=true" : "");
}

/// `ep-overlap{module_fqn="layers.*.moe"},concretize`.
std::string OverlapText(const TrainConfig& config) {
  const CompileConfig& compile = config.compile;
  const ExpertOverlapConfig& overlap = compile.ep_overlap;
  const bool stays_symbolic = compile.symbolic_batch || compile.symbolic_seq || !overlap.InGraph();
  const std::string concretize = stays_symbolic ? "" : "concretize";
  if (config.parallelism.expert == 1) return concretize;
  const std::string topology =
      overlap.topology.empty() ? "" : fmt::format(",topology=\"{}\"", overlap.topology);
  return fmt::format("ep-overlap{{module_fqn=\"{}\",pair_first_token_exchange={}{}}}{}{}",
                     ModulesOf(overlap), !overlap.whole_layers, topology, stays_symbolic ? "" : ",",
                     concretize);
}

Status CheckOverlap(const CompileConfig& compile, const Passes& passes) {
  if (!compile.enable_passes) {
    return Error(
        "keys of the configuration contradict each other: compile.ep_overlap.enabled: "
        "compile.enable_passes is false, take one of them out");
  }
  if (Has(passes, "ep-chunk")) {
    return Error(
        "pass and configuration contradict each other: ep-chunk: compile.ep_overlap.enabled is "
        "true, take one of them out");
  }
  return Ok();
}

/// After the memory passes, whose copies are then backward nodes like others: chunks; then what
/// merges collectives of parameters, which sees one gradient of all chunks; then the order of the
/// chunks, which no later pass disturbs. Stages are cut by module, and the nodes of a bucket are of
/// several modules.
Status InsertCommunication(const TrainConfig& config, const PassRegistry& registry,
                           Passes& passes) {
  const CompileConfig& compile = config.compile;
  const ParallelismConfig& parallelism = config.parallelism;
  const ExpertOverlapConfig& overlap = compile.ep_overlap;
  const bool exchanges = parallelism.expert > 1;
  const bool has_chunks =
      overlap.InGraph() || (overlap.InProgram() && exchanges && compile.enable_passes);
  const bool has_collectives =
      parallelism.mesh.num_ranks() > 1 && parallelism.pipeline.degree == 1 && compile.enable_passes;
  if (has_chunks) {
    STRATA_RETURN_IF_ERROR(CheckOverlap(compile, passes));
    STRATA_RETURN_IF_ERROR(Insert(ChunkText(overlap, exchanges), registry, passes));
    if (exchanges) STRATA_RETURN_IF_ERROR(Insert("isolate-expert-groups", registry, passes));
  }
  if (overlap.InGraph()) {
    STRATA_TRY(Passes cleanup, ParsePipeline("dce", registry));
    InsertBeforeKernels(std::move(cleanup), passes);
  }
  if (has_collectives) STRATA_RETURN_IF_ERROR(Insert(CommunicationText(config), registry, passes));
  if (has_chunks) STRATA_RETURN_IF_ERROR(Insert(OverlapText(config), registry, passes));
  if (has_collectives) STRATA_RETURN_IF_ERROR(Insert(DenseRegionsText(compile), registry, passes));
  return Ok();
}

std::string_view PassesOf(KernelScope scope) {
  switch (scope) {
    case KernelScope::kPipeline:
    case KernelScope::kOverlap:
      break;
    case KernelScope::kRegional:
      return "annotate-flex,annotate-regions,compile-regions";
    case KernelScope::kFull:
      return "reorder-for-peak";
    case KernelScope::kStandalone:
      return "reorder-for-peak,compile-standalone";
  }
  return "";
}

/// What `compile.inductor_compilation` puts before the kernels, which it makes in any case.
Status InsertKernelScope(const CompileConfig& compile, const PassRegistry& registry,
                         Passes& passes) {
  if (compile.inductor == KernelScope::kPipeline || !compile.enable_passes) return Ok();
  STRATA_RETURN_IF_ERROR(Insert(std::string(PassesOf(compile.inductor)), registry, passes));
  if (Has(passes, "fuse")) return Ok();
  STRATA_TRY(Passes kernels, ParsePipeline("fuse", registry));
  passes.push_back(std::move(kernels.front()));
  return Ok();
}

}  // namespace

Result<Passes> TrainingPasses(const TrainConfig& config, std::string_view text) {
  const PassRegistry& registry = AllPasses();
  const std::vector<std::string>& disabled = config.compile.disable_passes;
  STRATA_RETURN_IF_ERROR(CheckNames(disabled, registry));
  STRATA_TRY(Passes passes, ParsePipeline(text, registry));
  if (!config.compile.enable_passes) passes.clear();
  STRATA_RETURN_IF_ERROR(InsertMemory(config, registry, passes));
  STRATA_RETURN_IF_ERROR(InsertCommunication(config, registry, passes));
  STRATA_RETURN_IF_ERROR(InsertPipeline(config, registry, passes));
  STRATA_RETURN_IF_ERROR(InsertKernelScope(config.compile, registry, passes));
  std::erase_if(passes, [&](const std::unique_ptr<Pass>& pass) {
    return std::ranges::find(disabled, pass->name()) != disabled.end();
  });
  if (config.disable_cuda_graphs && Has(passes, "cuda-graph")) {
    return Error(
        "pass and configuration contradict each other: cuda-graph: training.disable_cuda_graphs is "
        "true, take one of them out");
  }
  if (config.parallelism.pipeline.degree > 1 && Has(passes, "cuda-graph")) {
    return Error(
        "pass and configuration contradict each other: cuda-graph: "
        "parallelism.pipeline_parallel_degree is {}, and a device graph writes over what the "
        "microbatch before left for backward: take one of them out",
        config.parallelism.pipeline.degree);
  }
  STRATA_RETURN_IF_ERROR(InsertPlacement(config, registry, passes));
  return passes;
}

}  // namespace strata

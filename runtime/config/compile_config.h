#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace strata {

/// Key `compile.ep_overlap`: modules with experts run in chunks of their input.
struct ExpertOverlapConfig {
  bool enabled = false;
  bool along_seq = false;  ///< chunks of each sequence; else of the batch
  bool is_eager = false;   ///< the program calls the modules per chunk; else a pass cuts the graph
  bool whole_layers = true;  ///< `layers.*`; else `layers.*.moe`
  int64_t num_chunks = 2;
  std::string topology;  ///< whose costs the order of the chunks follows; "": in rounds

  bool InProgram() const { return enabled && is_eager; }
  bool InGraph() const { return enabled && !is_eager; }
};

/// Key `compile.inductor_compilation`: which nodes become kernels.
enum class KernelScope : uint8_t {
  kPipeline,    ///< absent: as the pipeline says
  kRegional,    ///< regions: attention, norms and elementwise chains, each compiled alone
  kFull,        ///< the whole graph, in an order with a lower peak
  kStandalone,  ///< the same, the whole graph as one node
  kOverlap,     ///< the whole graph; collectives are merged by size and moved beside computation
};

/// Key `compile`.
struct CompileConfig {
  // Sizes that are symbols in the graph of a step.
  bool symbolic_batch = false;
  bool symbolic_seq = false;
  std::string passes;                       ///< the pipeline; "": that of the command
  bool enable_passes = true;                ///< false: the traced graphs run as they are
  std::vector<std::string> disable_passes;  ///< left out of the pipeline, by name
  /// Of the pass `tag-memory`, which results are saved for backward; "none": all of them.
  std::string memory_policy = "none";
  /// That `inductor` chose it: passes that the run names do instead.
  bool is_memory_policy_implied = false;
  std::string save_ops;  ///< with policy "full": the selectors of the nodes that it saves
  /// With policy "sac_and_offload". GiB of the host for offloaded results, 0: no limit; layers by
  /// which copies back start earlier, and after which copies to the host are awaited.
  double offload_budget_gb = 100;
  int64_t offload_prefetch = 1, offload_defer = 1;
  std::string offload_folder = {};  ///< offloaded results are in files there; "": in memory
  /// Tags of single nodes instead of the policy's (passes/memory/overrides.h).
  std::string memory_overrides = {};
  /// With policy "budget": bytes of the peak of a step; whether results may go to the host.
  int64_t memory_budget_bytes = 0;
  bool memory_budget_offload = true;
  std::string memory_budget_times = {};  ///< file of a profile, what nodes cost; "": modelled
  /// Key `enable_fsdp_ag_rs_overlap`: all-gathers of parameters have a communicator of their own.
  bool separate_gathers = false;
  /// Key `enable_fsdp_dense_region_overlap`: collectives of parameters keep clear of experts'.
  bool dense_regions = false;
  ExpertOverlapConfig ep_overlap;
  KernelScope inductor = KernelScope::kPipeline;
  /// Products beside collectives of tensor parallelism run in parts (passes/comm/async_tensor.h).
  bool async_tensor_parallel = false;
  /// Key `enable_autoparallel`: placements are searched, on this topology; "": that of the device.
  bool autoparallel = false;
  std::string autoparallel_topology = {};
  /// Where the graphs are kept for other ranks and runs; "": nowhere.
  std::string precompile_artifact_dir;

  /// Sizes that the trace has as symbols: those that stay, and the one that `ep_overlap` cuts.
  bool TracesBatch() const {
    return symbolic_batch || (ep_overlap.InGraph() && !ep_overlap.along_seq);
  }
  bool TracesSeq() const { return symbolic_seq || (ep_overlap.InGraph() && ep_overlap.along_seq); }
};

}  // namespace strata

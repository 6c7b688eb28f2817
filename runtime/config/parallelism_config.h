#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "passes/placement/mesh.h"

namespace strata {

/// Key `parallelism.fsdp_reshard_after_forward`: whether the backward pass gathers parameters
/// again.
enum class ReshardAfterForward : uint8_t { kDefault, kAlways, kNever };

/// Keys `parallelism.pipeline_parallel_…`: stages of the model on ranks of their own.
struct PipelineConfig {
  int64_t degree = 1;             ///< ranks that have different layers
  std::string schedule = "1F1B";  ///< name of a kind (passes/pipeline/schedule/schedule.h)
  std::string schedule_csv;       ///< file of another schedule; "": that of `schedule`
  int64_t microbatches = 1;       ///< of a schedule; they are batches of `accumulation_steps`
  int64_t num_stages = 1;
  int64_t first_less = 1, last_less = 1;  ///< layers that the other modules of a stage count as
  bool balance = false;                   ///< stages take equally long, not equally many layers
  std::string times = {};  ///< with `balance`: file of a profile by module; "": modelled
  std::vector<std::vector<std::string>> modules = {};  ///< of each stage, by name; empty: divided
};

/// Key `parallelism`: how many ranks share the work, and how.
struct ParallelismConfig {
  int64_t dp_replicate = 1;  ///< groups of ranks that hold the same parameters
  int64_t dp_shard = -1;     ///< ranks that hold a part of each parameter; -1: those that are left
  int64_t context = 1;       ///< ranks that share sequences
  int64_t tensor = 1;
  int64_t expert = 1;  ///< of the ranks of `dp_shard`, `context` and `tensor`
  bool sequence_parallel = true;
  bool disable_loss_parallel = false;
  ReshardAfterForward reshard = ReshardAfterForward::kDefault;
  std::string plan;  ///< of placements: a name or a file (passes/placement/plan.h); "": the model's
  Mesh mesh = {};    ///< that the degrees give: pp, dp_replicate, fsdp, cp, tp, ep
  Mesh stage_mesh = {};  ///< the same without pp: the ranks of a stage
  PipelineConfig pipeline;
  /// Keys `comm.init_timeout_seconds` and `comm.train_timeout_seconds`: how long a rank waits for
  /// another in the first step, and in later ones.
  int64_t init_timeout_seconds = 300, train_timeout_seconds = 100;
  /// Key `comm.simulated_network`: collectives take the time of this topology longer; "": no time.
  std::string simulated_network;

  /// Ranks that read different sequences.
  int64_t data_ranks() const { return dp_replicate * dp_shard; }
};

}  // namespace strata

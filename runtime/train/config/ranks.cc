#include "runtime/train/config/ranks.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace strata {
namespace {

/// A degree that must be 1, or `automatic` where the run has one rank.
void ReadDegree(ConfigReader& reader, std::string_view key, bool may_be_automatic = false) {
  int64_t degree = 1;
  reader.Read(key, degree);
  if (degree == 1 || (may_be_automatic && degree == -1)) return;
  reader.Refuse(key, degree < 1
                         ? fmt::format("{} must be at least 1", degree)
                         : fmt::format("training runs on one rank, take 1 instead of {}", degree));
}

void ReadOff(ConfigReader& reader, std::string_view key, std::string_view what) {
  bool is_on = false;
  reader.Read(key, is_on);
  if (is_on) reader.Refuse(key, fmt::format("{}, take false", what));
}

}  // namespace

void ReadRanks(ConfigReader& reader) {
  reader.Table("parallelism");
  ReadDegree(reader, "parallelism.data_parallel_replicate_degree");
  ReadDegree(reader, "parallelism.data_parallel_shard_degree", /*may_be_automatic=*/true);
  for (const std::string_view axis : {"tensor", "pipeline", "context", "expert", "expert_tensor"}) {
    ReadDegree(reader, fmt::format("parallelism.{}_parallel_degree", axis));
  }
  ReadDegree(reader, "parallelism.num_pp_microbatches");
  enum class Reshard : uint8_t { kDefault, kAlways, kNever };
  Reshard reshard = Reshard::kDefault;  // of parameters that are on one rank anyway
  reader.Read<Reshard>(
      "parallelism.fsdp_reshard_after_forward",
      {{"default", Reshard::kDefault}, {"always", Reshard::kAlways}, {"never", Reshard::kNever}},
      reshard);
  bool any = false;
  reader.Read("parallelism.enable_sequence_parallel", any);
  ReadOff(reader, "parallelism.enable_async_tensor_parallel",
          "there is no tensor parallelism on one rank");
  ReadOff(reader, "training.enable_cpu_offload", "parameters stay where the run is");
  ReadOff(reader, "compile.enable_autoparallel", "there is nothing to place on one rank");
  ReadOff(reader, "compile.ep_overlap.enabled", "there is no expert parallelism on one rank");
  reader.Table("compile.ep_overlap");

  enum class Recompute : uint8_t { kNone };
  Recompute recompute = Recompute::kNone;
  reader.Table("activation_checkpoint");
  reader.Read<Recompute>("activation_checkpoint.mode", {{"none", Recompute::kNone}}, recompute);
  enum class Memory : uint8_t { kDefault };
  Memory memory = Memory::kDefault;
  reader.Read<Memory>("compile.memory_policy", {{"default", Memory::kDefault}}, memory);

  for (const std::string_view table : {"float8", "mx", "quantize"}) {
    reader.RefuseTable(table,
                       "models compute in float32 or bfloat16: remove it, "
                       "training.mixed_precision_param chooses");
  }
}

}  // namespace strata

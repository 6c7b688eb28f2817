#include "runtime/config/ranks.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

void ReadParallelism(ConfigReader& reader) {
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
  enum class Backend : uint8_t { kAny };
  Backend backend = Backend::kAny;  // of placements that are all on one rank
  reader.Read<Backend>("parallelism.spmd_backend",
                       {{"spmd_types", Backend::kAny}, {"partial_dtensor", Backend::kAny}},
                       backend);
  bool any = false;
  reader.Read("parallelism.enable_sequence_parallel", any);
  reader.Fix("parallelism.enable_async_tensor_parallel", false,
             "there is no tensor parallelism on one rank, take false");
  reader.Fix("parallelism.context_parallel_load_balancer", "headtail",
             "there is no context parallelism on one rank, remove it");

  constexpr std::string_view kOneStage = "one rank has one stage, remove it";
  reader.Fix("parallelism.pipeline_parallel_schedule", "1F1B", kOneStage);
  reader.Fix("parallelism.pipeline_parallel_schedule_csv", "", kOneStage);
  for (const std::string_view end : {"first", "last"}) {
    reader.Fix(fmt::format("parallelism.pipeline_parallel_{}_stage_less_layers", end), int64_t{1},
               kOneStage);
  }
  reader.Fix("parallelism.pipeline_parallel_layers_per_stage", {}, kOneStage);
  reader.Fix("parallelism.module_fqns_per_model_part", std::vector<std::string>(), kOneStage);
}

void ReadTimeout(ConfigReader& reader, std::string_view key) {
  int64_t seconds = 1;  // one rank waits for no other
  reader.Read(key, seconds);
  if (seconds < 1) reader.Refuse(key, fmt::format("{} seconds must be at least 1", seconds));
}

void ReadComm(ConfigReader& reader) {
  reader.Table("comm");
  ReadTimeout(reader, "comm.init_timeout_seconds");
  ReadTimeout(reader, "comm.train_timeout_seconds");
  enum class Mode : uint8_t { kDefault, kOther };
  Mode mode = Mode::kDefault;
  reader.Read<Mode>("comm.mode",
                    {{"default", Mode::kDefault},
                     {"fake_backend", Mode::kOther},
                     {"local_tensor", Mode::kOther},
                     {"torchcomms", Mode::kOther}},
                    mode);
  constexpr std::string_view kNothing = "one rank sends nothing to others";
  if (mode == Mode::kOther) {
    reader.Refuse("comm.mode", fmt::format("{}, take 'default'", kNothing));
  }
  const std::string advice = fmt::format("{}, remove it", kNothing);
  reader.Fix("comm.trace_buf_size", int64_t{20'000}, advice);
  reader.Fix("comm.save_traces_folder", "comm_traces", advice);
  reader.Fix("comm.save_traces_file_prefix", "rank_", advice);
}

}  // namespace

void ReadRanks(ConfigReader& reader) {
  ReadParallelism(reader);
  ReadComm(reader);
  reader.Fix("training.enable_cpu_offload", false, "parameters stay where the run is, take false");

  enum class Recompute : uint8_t { kNone, kOther };
  Recompute recompute = Recompute::kNone;
  reader.Table("activation_checkpoint");
  reader.Read<Recompute>("activation_checkpoint.mode",
                         {{"none", Recompute::kNone},
                          {"selective", Recompute::kOther},
                          {"full", Recompute::kOther},
                          {"memory_budget", Recompute::kOther}},
                         recompute);
  if (recompute == Recompute::kOther) {
    reader.Refuse("activation_checkpoint.mode", "nothing is recomputed yet, take 'none'");
  }

  for (const std::string_view table : {"float8", "mx", "quantize"}) {
    reader.RefuseTable(table,
                       "models compute in float32 or bfloat16: remove it, "
                       "training.mixed_precision_param chooses");
  }
}

}  // namespace strata

#include "runtime/config/ranks.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/placement/mesh.h"
#include "runtime/config/checks.h"
#include "runtime/config/pipeline.h"

namespace strata {
namespace {

constexpr std::string_view kReplicateKey = "parallelism.data_parallel_replicate_degree";
constexpr std::string_view kShardKey = "parallelism.data_parallel_shard_degree";
constexpr std::string_view kTensorKey = "parallelism.tensor_parallel_degree";
constexpr std::string_view kContextKey = "parallelism.context_parallel_degree";
constexpr std::string_view kExpertKey = "parallelism.expert_parallel_degree";

constexpr int64_t kMaxDegree = 65'536;

void ReadDegree(ConfigReader& reader, std::string_view key, int64_t& degree) {
  reader.Read(key, degree);
  const bool is_inferred = key == kShardKey && degree == -1;
  if (degree < 1 && !is_inferred) {
    reader.Refuse(key, fmt::format("{} must be at least 1", degree));
  } else if (degree > kMaxDegree) {
    reader.Refuse(key, fmt::format("{} must be at most {}", degree, kMaxDegree));
  }
}

/// A degree that must be 1.
void ReadOne(ConfigReader& reader, std::string_view key, std::string_view what) {
  int64_t degree = 1;
  reader.Read(key, degree);
  if (degree == 1) return;
  reader.Refuse(key, degree < 1 ? fmt::format("{} must be at least 1", degree)
                                : fmt::format("{}, take 1 instead of {}", what, degree));
}

void ReadParallelism(ConfigReader& reader, ParallelismConfig& parallelism) {
  reader.Table("parallelism");
  ReadDegree(reader, kReplicateKey, parallelism.dp_replicate);
  ReadDegree(reader, kShardKey, parallelism.dp_shard);
  ReadDegree(reader, kContextKey, parallelism.context);
  ReadDegree(reader, kTensorKey, parallelism.tensor);
  ReadDegree(reader, kExpertKey, parallelism.expert);
  ReadPipeline(reader, parallelism.pipeline);
  ReadOne(reader, "parallelism.expert_tensor_parallel_degree", "a rank has whole experts");
  reader.Read<ReshardAfterForward>("parallelism.fsdp_reshard_after_forward",
                                   {{"default", ReshardAfterForward::kDefault},
                                    {"always", ReshardAfterForward::kAlways},
                                    {"never", ReshardAfterForward::kNever}},
                                   parallelism.reshard);
  enum class Backend : uint8_t { kAny };
  Backend backend = Backend::kAny;  // passes place the graph, whatever would place modules
  reader.Read<Backend>("parallelism.spmd_backend",
                       {{"spmd_types", Backend::kAny}, {"partial_dtensor", Backend::kAny}},
                       backend);
  reader.Read("parallelism.plan", parallelism.plan);
  reader.Read("parallelism.enable_sequence_parallel", parallelism.sequence_parallel);
  reader.Read("parallelism.disable_loss_parallel", parallelism.disable_loss_parallel);
  reader.Fix("parallelism.enable_async_tensor_parallel", false,
             "the key is compile.enable_async_tensor_parallel here, remove it and set that");
  reader.Fix("parallelism.context_parallel_load_balancer", "headtail",
             "a rank has one piece of each sequence, remove it");
}

void ReadTimeout(ConfigReader& reader, std::string_view key, int64_t& seconds) {
  reader.Read(key, seconds);
  if (seconds < 1) reader.Refuse(key, fmt::format("{} seconds must be at least 1", seconds));
}

void ReadComm(ConfigReader& reader, ParallelismConfig& parallelism) {
  reader.Table("comm");
  ReadTimeout(reader, "comm.init_timeout_seconds", parallelism.init_timeout_seconds);
  ReadTimeout(reader, "comm.train_timeout_seconds", parallelism.train_timeout_seconds);
  reader.Read("comm.simulated_network", parallelism.simulated_network);
  enum class Mode : uint8_t { kDefault, kOther };
  Mode mode = Mode::kDefault;
  reader.Read<Mode>("comm.mode",
                    {{"default", Mode::kDefault},
                     {"fake_backend", Mode::kOther},
                     {"local_tensor", Mode::kOther},
                     {"torchcomms", Mode::kOther}},
                    mode);
  if (mode == Mode::kOther) {
    reader.Refuse("comm.mode", "ranks are threads of the process, take 'default'");
  }
  constexpr std::string_view advice = "what ranks send is not written down, remove it";
  reader.Fix("comm.trace_buf_size", int64_t{20'000}, advice);
  reader.Fix("comm.save_traces_folder", "comm_traces", advice);
  reader.Fix("comm.save_traces_file_prefix", "rank_", advice);
}

/// `pipeline 2 · `, of several stages.
std::string PipelineText(const PipelineConfig& pipeline) {
  return pipeline.degree == 1 ? "" : fmt::format("pipeline {} · ", pipeline.degree);
}

/// The value of a degree that is -1. Errors: ranks that the other degrees do not divide.
Result<int64_t> InferShards(const ConfigReader& reader, int64_t world, int64_t others) {
  if (world % others == 0) return world / others;
  return Impossible(reader, kShardKey,
                    "-1 takes the ranks that are left, but {} ranks are no multiple of the {} of "
                    "the other degrees",
                    world, others);
}

/// Ranks that share experts are whole axes, the innermost first, and an even part of the next one.
bool MayShareExperts(int64_t ranks, const ParallelismConfig& parallelism) {
  for (const int64_t axis : {parallelism.tensor, parallelism.context, parallelism.dp_shard}) {
    if (axis % ranks == 0) return true;
    if (ranks % axis != 0) return false;
    ranks /= axis;
  }
  return ranks == 1;
}

/// `1, 2, 6`
std::string PossibleExpertDegrees(int64_t lent, const ParallelismConfig& parallelism) {
  std::vector<int64_t> degrees;
  for (int64_t degree = 1; degree <= lent; ++degree)
    if (lent % degree == 0 && MayShareExperts(degree, parallelism)) degrees.push_back(degree);
  return fmt::format("{}", fmt::join(degrees, ", "));
}

}  // namespace

void ReadRanks(ConfigReader& reader, ParallelismConfig& parallelism) {
  ReadParallelism(reader, parallelism);
  ReadComm(reader, parallelism);
  reader.Fix("training.enable_cpu_offload", false, "parameters stay where the run is, take false");

  for (const std::string_view table : {"float8", "mx", "quantize"}) {
    if (reader.Has("converters")) continue;  // which alone read them
    reader.RefuseTable(table,
                       "models compute in float32 or bfloat16: remove it, "
                       "training.mixed_precision_param chooses");
  }
}

Status CompleteRanks(const ConfigReader& reader, std::optional<int64_t> world,
                     ParallelismConfig& parallelism) {
  const int64_t others = parallelism.pipeline.degree * parallelism.dp_replicate *
                         parallelism.context * parallelism.tensor;
  if (parallelism.dp_shard == -1) {
    STRATA_TRY(parallelism.dp_shard, InferShards(reader, world.value_or(others), others));
  }
  const int64_t ranks = others * parallelism.dp_shard;
  if (world && ranks != *world) {
    return Impossible(reader, kShardKey,
                      "the degrees make {} ranks ({}replicate {} · shard {} · context {} · tensor "
                      "{}), but the run has {}",
                      ranks, PipelineText(parallelism.pipeline), parallelism.dp_replicate,
                      parallelism.dp_shard, parallelism.context, parallelism.tensor, *world);
  }
  const int64_t lent = parallelism.dp_shard * parallelism.context * parallelism.tensor;
  if (lent % parallelism.expert != 0) {
    return Impossible(
        reader, kExpertKey,
        "{} does not divide the {} ranks of shard {} · context {} · tensor {}, which experts share",
        parallelism.expert, lent, parallelism.dp_shard, parallelism.context, parallelism.tensor);
  }
  if (!MayShareExperts(parallelism.expert, parallelism)) {
    return Impossible(
        reader, kExpertKey,
        "experts are shared by whole axes and an even part of the next one, tensor {} first, then "
        "context {}, then shard {}: take one of {}",
        parallelism.tensor, parallelism.context, parallelism.dp_shard,
        PossibleExpertDegrees(lent, parallelism));
  }
  const std::string stage = fmt::format(
      "dp_replicate={},fsdp={},cp={},tp={},ep={}", parallelism.dp_replicate, parallelism.dp_shard,
      parallelism.context, parallelism.tensor, parallelism.expert);
  auto mesh = Mesh::Parse(fmt::format("pp={},{}", parallelism.pipeline.degree, stage));
  if (!mesh) return Impossible(reader, kShardKey, "{}", mesh.error().message());
  parallelism.mesh = *std::move(mesh);
  STRATA_TRY(parallelism.stage_mesh, Mesh::Parse(stage));
  return Ok();
}

Status CheckModelOnRanks(const ConfigReader& reader, const TrainConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  for (const auto& [what, number] :
       {NamedValue<int64_t>{"n_heads", config.n_heads}, {"n_kv_heads", config.n_kv_heads}}) {
    if (number % parallelism.tensor == 0) continue;
    return Impossible(reader, kTensorKey, "{} ranks do not divide {} {}", parallelism.tensor, what,
                      number);
  }
  const int64_t pieces = parallelism.sequence_parallel ? parallelism.tensor : 1;
  if (config.seq_len % pieces != 0) {
    return Impossible(reader, kTensorKey,
                      "{} ranks do not divide seq_len {}, take another or "
                      "parallelism.enable_sequence_parallel = false",
                      parallelism.tensor, config.seq_len);
  }
  if (config.seq_len % (parallelism.context * pieces) != 0) {
    return Impossible(reader, kContextKey, "{} ranks do not divide seq_len {}{}",
                      parallelism.context, config.seq_len,
                      pieces == 1 ? "" : ", of which those of tensor parallelism have parts");
  }
  if (config.moe && !config.moe->use_grouped_mm) {
    // One by one they have as many rows as the router decides, on each rank others.
    for (const auto& [key, ranks] : {NamedValue<int64_t>{kExpertKey, parallelism.expert},
                                     {kTensorKey, parallelism.tensor},
                                     {kContextKey, parallelism.context},
                                     {kShardKey, parallelism.dp_shard},
                                     {kReplicateKey, parallelism.dp_replicate}}) {
      if (ranks == 1) continue;
      return Impossible(reader, key,
                        "experts of several ranks are one product, take moe.use_grouped_mm = true");
    }
  }
  if (parallelism.expert == 1) return Ok();
  if (!config.moe) {
    return Impossible(reader, kExpertKey, "the model has no experts, take 1");
  }
  if (config.moe->num_experts % parallelism.expert != 0) {
    return Impossible(reader, kExpertKey, "{} ranks do not divide moe.num_experts {}",
                      parallelism.expert, config.moe->num_experts);
  }
  if (parallelism.tensor > 1 && !parallelism.sequence_parallel) {
    return Impossible(reader, kExpertKey,
                      "ranks of tensor parallelism send tokens of their own to experts, take "
                      "parallelism.enable_sequence_parallel = true");
  }
  return Ok();
}

}  // namespace strata

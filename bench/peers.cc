#include "bench/peers.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "embedded/bench_peers_assets.h"
#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/stage_modules.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/data/tokens.h"

namespace strata::cli {
namespace {

void Describe(const RopeConfig& rope, JsonWriter& json) {
  const char* const scaling = rope.scaling == RopeScaling::kLlama  ? "llama"
                              : rope.scaling == RopeScaling::kYarn ? "yarn"
                                                                   : "none";
  json.BeginObject()
      .Field("theta", rope.theta)
      .Field("backend", rope.backend == RopeBackend::kComplex ? "complex" : "cos_sin")
      .Field("scaling", scaling)
      .Field("max_seq_len", rope.max_seq_len)
      .Field("scaling_factor", rope.scaling_factor)
      .Field("low_freq_factor", rope.low_freq_factor)
      .Field("high_freq_factor", rope.high_freq_factor)
      .Field("original_max_position_embeddings", rope.original_max_position_embeddings)
      .Field("rope_factor", rope.rope_factor)
      .Field("beta_fast", rope.beta_fast)
      .Field("beta_slow", rope.beta_slow)
      .Field("original_seq_len", rope.original_seq_len)
      .EndObject();
}

void Describe(const MlaConfig& mla, JsonWriter& json) {
  json.BeginObject()
      .Field("q_lora_rank", mla.q_lora_rank)
      .Field("kv_lora_rank", mla.kv_lora_rank)
      .Field("qk_nope_head_dim", mla.qk_nope_head_dim)
      .Field("qk_rope_head_dim", mla.qk_rope_head_dim)
      .Field("v_head_dim", mla.v_head_dim)
      .Field("mscale", mla.mscale)
      .EndObject();
}

void Describe(const MoeConfig& moe, JsonWriter& json) {
  json.BeginObject()
      .Field("num_experts", moe.num_experts)
      .Field("top_k", moe.top_k)
      .Field("moe_hidden_dim", moe.moe_hidden_dim)
      .Field("num_shared_experts", moe.num_shared_experts)
      .Field("score_func", moe.score_func == ScoreFunction::kSoftmax ? "softmax" : "sigmoid")
      .Field("route_norm", moe.route_norm)
      .Field("route_scale", moe.route_scale)
      .Field("num_expert_groups", moe.num_expert_groups)
      .Field("num_limited_groups", moe.num_limited_groups)
      .Field("score_before_experts", moe.score_before_experts)
      .Field("use_grouped_mm", moe.use_grouped_mm)
      .Key("load_balance_coeff");
  moe.load_balance_coeff ? json.Double(*moe.load_balance_coeff) : json.Null();
  json.EndObject();
}

/// The configuration under the names that bench/peers/train_peers.py reads.
void Describe(const TrainConfig& c, JsonWriter& json) {
  json.BeginObject()
      .Field("model", Name(c.model))
      .Field("dim", c.dim)
      .Field("n_layers", c.n_layers)
      .Field("n_dense_layers", c.n_dense_layers)
      .Field("n_heads", c.n_heads)
      .Field("n_kv_heads", c.n_kv_heads)
      .Field("head_dim", c.head_dim)
      .Field("hidden_dim", c.hidden_dim)
      .Field("vocab_size", c.vocab_size)
      .Field("qk_norm", c.qk_norm)
      .Field("enable_weight_tying", c.enable_weight_tying)
      .Field("device", c.device == DeviceKind::kCuda ? "cuda" : "cpu")
      .Field("precision", Name(c.mixed_precision_param))
      .Field("norm_eps", c.norm_eps)
      .Field("attn_type", c.attn_type == AttentionType::kFlex ? "flex" : "sdpa")
      .Field("window", c.flex.window);
  Describe(c.rope, json.Key("rope"));
  Describe(c.mla, json.Key("mla"));
  json.Key("moe");
  if (c.moe) {
    Describe(*c.moe, json);
  } else {
    json.Null();
  }
  json.Key("optimizer")
      .BeginObject()
      .Field("lr", c.optimizer.lr)
      .Field("beta1", c.optimizer.beta1)
      .Field("beta2", c.optimizer.beta2)
      .Field("eps", c.optimizer.eps)
      .Field("weight_decay", c.optimizer.weight_decay)
      .Field("max_grad_norm", c.optimizer.max_grad_norm.value_or(1e30))
      .EndObject();
  json.EndObject();
}

/// Schedule and stages.
Status DescribePipeline(const TrainConfig& c, JsonWriter& json) {
  const PipelineConfig& pipeline = c.parallelism.pipeline;
  STRATA_TRY(const StageModules modules,
             StageModules::Split(c.n_layers, pipeline.num_stages, pipeline.first_less,
                                 pipeline.last_less));
  STRATA_TRY(const ScheduleKind kind, FindScheduleKind(pipeline.schedule));
  const std::vector<int64_t> ranks =
      RanksOfStages(pipeline.num_stages, pipeline.degree, kind.style);
  json.BeginObject()
      .Field("schedule", pipeline.schedule)
      .Field("microbatches", pipeline.microbatches)
      .Key("stages")
      .BeginArray();
  for (int64_t stage = 0; stage < modules.size(); ++stage) {
    json.BeginObject().Field("rank", ranks[static_cast<size_t>(stage)]).Key("modules").BeginArray();
    for (const std::string& name : modules.of(stage))
      json.String(name);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return Ok();
}

/// `steps`: of one microbatch, where a step has several.
Status WriteInit(const Trainer& trainer, int64_t steps, const std::string& path) {
  const TrainConfig& c = trainer.config();
  const TokenData tokens = TokenData::Synthetic(c);
  std::vector<int64_t> all;
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<int64_t> batch = tokens.Step(step);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  std::vector<TensorView> tensors = trainer.Parameters();
  tensors.push_back({.name = "tokens",
                     .dtype = TensorDtype::kI64,
                     .shape = {steps, c.batch_size, c.seq_len + 1},
                     .bytes = std::as_bytes(std::span(all))});
  return WriteSafetensors(path, std::move(tensors));
}

}  // namespace

std::string FindPeerPython() {
  constexpr const char* kPython = ".venv-bench/bin/python";
  if (std::filesystem::exists(kPython)) return kPython;
  Warn("no PyTorch to compare with: run ./dev setup bench, or give --python");
  return "";
}

Result<std::vector<std::string>> PeerCommand(const std::string& python, const PeerRequest& request,
                                             const Trainer& trainer, const std::string& folder) {
  const std::string init = folder + "/init.safetensors",
                    file = fmt::format("{}/{}.json", folder, request.name),
                    script = folder + "/" + request.script;
  if (!std::filesystem::exists(init))
    STRATA_RETURN_IF_ERROR(WriteInit(trainer, 8 * trainer.config().accumulation_steps, init));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/peer_models.py", assets::kPeerModelsPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/rank_peers.py", assets::kRankPeersPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/train_peers.py", assets::kTrainPeersPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/parallel_peers.py", assets::kParallelPeersPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/pipeline_peers.py", assets::kPipelinePeersPy));
  std::string body;
  JsonWriter json(body);
  const TrainConfig& config = trainer.config();
  Describe(config, json.BeginObject().Key("config"));
  json.Key("mesh")
      .BeginObject()
      .Field("dp_replicate", config.parallelism.dp_replicate)
      .Field("fsdp", config.parallelism.dp_shard)
      .Field("tp", config.parallelism.tensor)
      .EndObject();
  if (config.parallelism.pipeline.degree > 1)
    STRATA_RETURN_IF_ERROR(DescribePipeline(config, json.Key("pipeline")));
  json.Field("init", init)
      .Field("peer", request.name)
      .Field("threads", int32_t{request.threads})
      .Field("cache", fmt::format("{}/cache-{}", folder, request.name));
  if (!request.checkpoint.empty()) json.Field("checkpoint", request.checkpoint);
  if (request.memory_budget) json.Field("memory_budget", *request.memory_budget);
  json.EndObject();
  STRATA_RETURN_IF_ERROR(WriteFile(file, body));
  return std::vector<std::string>{python, script, file};
}

Result<FirstSteps> PyTorchPeer::Begin() {
  STRATA_RETURN_IF_ERROR(process_->Send("begin"));
  return process_->ReceiveFirstSteps();
}

Result<std::vector<StepTime>> PyTorchPeer::Run(int64_t steps) {
  STRATA_RETURN_IF_ERROR(process_->Send(fmt::format("run {}", steps)));
  return process_->ReceiveTimes();
}

Result<std::unique_ptr<PyTorchPeer>> StartPeer(const std::string& python,
                                               const PeerRequest& request, const Trainer& trainer,
                                               const std::string& folder) {
  STRATA_TRY(std::vector<std::string> words, PeerCommand(python, request, trainer, folder));
  STRATA_TRY(std::unique_ptr<Worker> process,
             Worker::Start({.words = std::move(words),
                            .log = fmt::format("{}/{}.log", folder, request.name)}));
  return std::make_unique<PyTorchPeer>(request.name, std::move(process));
}

}  // namespace strata::cli

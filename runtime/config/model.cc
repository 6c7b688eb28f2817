#include "runtime/config/model.h"

#include <algorithm>
#include <cmath>

#include "runtime/config/checks.h"

namespace strata {
namespace {

constexpr int64_t kMaxLayers = 10'000;
// 4 TiB of fp32: what is larger is a slip of the keyboard, and products of sizes cannot overflow.
constexpr double kMaxElements = 0x1p40;

void SetFamilyDefaults(TrainConfig& config) {
  switch (config.model) {
    case ModelFamily::kLlama3:
      return;
    case ModelFamily::kQwen3:
      config.norm_eps = 1e-6;
      config.qk_norm = true;
      config.rope.theta = 1e6;
      config.rope.backend = RopeBackend::kCosSin;
      config.rope.scaling = RopeScaling::kNone;
      return;
    case ModelFamily::kDeepSeekV3:
      config.n_dense_layers = 1;
      config.rope.theta = 10'000.0;
      config.rope.scaling = RopeScaling::kYarn;
      return;
    case ModelFamily::kProgram:
    case ModelFamily::kLibrary:
      return;
  }
}

void ReadMla(ConfigReader& reader, MlaConfig& mla) {
  reader.Table("mla");
  reader.Read("mla.q_lora_rank", mla.q_lora_rank);
  reader.Read("mla.kv_lora_rank", mla.kv_lora_rank);
  reader.Read("mla.qk_nope_head_dim", mla.qk_nope_head_dim);
  reader.Read("mla.qk_rope_head_dim", mla.qk_rope_head_dim);
  reader.Read("mla.v_head_dim", mla.v_head_dim);
  reader.Read("mla.mscale", mla.mscale);
}

void ReadMoe(ConfigReader& reader, std::optional<MoeConfig>& target) {
  MoeConfig moe;
  reader.Table("moe");
  reader.Read("moe.num_experts", moe.num_experts);
  reader.Read("moe.top_k", moe.top_k);
  reader.Read("moe.moe_hidden_dim", moe.moe_hidden_dim);
  reader.Read("moe.num_shared_experts", moe.num_shared_experts);
  reader.Read<ScoreFunction>(
      "moe.score_func",
      {{"softmax", ScoreFunction::kSoftmax}, {"sigmoid", ScoreFunction::kSigmoid}}, moe.score_func);
  reader.Read("moe.route_norm", moe.route_norm);
  reader.Read("moe.route_scale", moe.route_scale);
  reader.Read("moe.num_expert_groups", moe.num_expert_groups);
  reader.Read("moe.num_limited_groups", moe.num_limited_groups);
  reader.Read("moe.score_before_experts", moe.score_before_experts);
  reader.Read("moe.use_grouped_mm", moe.use_grouped_mm);
  reader.Read("moe.load_balance_coeff", moe.load_balance_coeff);
  if (!reader.HasTable("moe")) return;
  for (const std::string_view key : {"moe.num_experts", "moe.top_k", "moe.moe_hidden_dim"})
    reader.RequireKey(key);
  target = moe;
}

/// int(8·dim/3), times the multiplier, rounded up: torchtitan's `compute_ffn_hidden_dim`.
int64_t DeriveHiddenDim(const TrainConfig& config) {
  const int64_t two_thirds = 8 * config.dim / 3;
  auto width = static_cast<double>(two_thirds);
  if (config.ffn_dim_multiplier) width = std::floor(*config.ffn_dim_multiplier * width);
  const auto multiple = static_cast<double>(config.multiple_of);
  width = std::ceil(width / multiple) * multiple;
  return width <= static_cast<double>(kMaxSize) ? static_cast<int64_t>(width) : kMaxSize + 1;
}

Status CompleteFeedForward(const ConfigReader& reader, TrainConfig& config) {
  if (config.model == ModelFamily::kLlama3) {
    STRATA_RETURN_IF_ERROR(CheckSize(reader, "multiple_of", config.multiple_of));
    if (config.ffn_dim_multiplier) {
      STRATA_RETURN_IF_ERROR(
          CheckPositive(reader, "ffn_dim_multiplier", *config.ffn_dim_multiplier));
    }
    if (!reader.Has("hidden_dim")) config.hidden_dim = DeriveHiddenDim(config);
  }
  const bool has_dense_layer = !config.HasExperts(0);
  if (has_dense_layer && config.model != ModelFamily::kLlama3 && !reader.Has("hidden_dim")) {
    return Error("missing key 'hidden_dim': {}: give the width of the dense feed-forward layers",
                 reader.Where("hidden_dim"));
  }
  return has_dense_layer || reader.Has("hidden_dim")
             ? CheckSize(reader, "hidden_dim", config.hidden_dim)
             : Ok();
}

/// Llama3 and Qwen3: grouped queries.
Status CompleteHeads(const ConfigReader& reader, TrainConfig& config) {
  if (!reader.Has("head_dim")) {
    if (config.dim % config.n_heads != 0) {
      return Impossible(reader, "n_heads",
                        "{} heads do not divide dim {}, choose a divisor of it or give head_dim",
                        config.n_heads, config.dim);
    }
    config.head_dim = config.dim / config.n_heads;
  }
  if (!reader.Has("n_kv_heads")) config.n_kv_heads = config.n_heads;
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "n_kv_heads", config.n_kv_heads));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "head_dim", config.head_dim));
  if (config.n_heads % config.n_kv_heads != 0) {
    return Impossible(reader, "n_kv_heads",
                      "{} key/value heads do not divide n_heads {}, choose a divisor of it",
                      config.n_kv_heads, config.n_heads);
  }
  if (config.head_dim % 2 != 0) {
    return Impossible(reader, reader.Has("head_dim") ? "head_dim" : "n_heads",
                      "rotary embeddings turn pairs, so head_dim {} must be even", config.head_dim);
  }
  if (config.model == ModelFamily::kLlama3 && config.qk_norm) {
    return Impossible(reader, "qk_norm", "llama3 has no norms of queries and keys, take false");
  }
  return Ok();
}

/// DeepSeek-V3: latent attention.
Status CompleteLatentHeads(const ConfigReader& reader, TrainConfig& config) {
  const MlaConfig& mla = config.mla;
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "mla.q_lora_rank", mla.q_lora_rank, 0, kMaxSize));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "mla.kv_lora_rank", mla.kv_lora_rank));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "mla.qk_nope_head_dim", mla.qk_nope_head_dim));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "mla.qk_rope_head_dim", mla.qk_rope_head_dim));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "mla.v_head_dim", mla.v_head_dim));
  if (mla.qk_rope_head_dim % 2 != 0) {
    return Impossible(reader, "mla.qk_rope_head_dim",
                      "rotary embeddings turn pairs, so {} must be even", mla.qk_rope_head_dim);
  }
  if (mla.mscale < 0.0) {
    return Impossible(reader, "mla.mscale", "{} must be at least 0", mla.mscale);
  }
  if (reader.Has("n_kv_heads") && config.n_kv_heads != config.n_heads) {
    return Impossible(reader, "n_kv_heads",
                      "latent attention has keys and values for each of the {} heads, remove it",
                      config.n_heads);
  }
  if (config.qk_norm) {
    return Impossible(reader, "qk_norm",
                      "deepseek_v3 has no norms of each head's query and key, take false");
  }
  config.n_kv_heads = config.n_heads;
  config.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  return Ok();
}

Status CheckGroups(const ConfigReader& reader, const MoeConfig& moe) {
  if (!reader.Has("moe.num_expert_groups")) {
    if (!reader.Has("moe.num_limited_groups")) return Ok();
    return Impossible(reader, "moe.num_limited_groups",
                      "there are no groups to choose from, give moe.num_expert_groups");
  }
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "moe.num_expert_groups", moe.num_expert_groups));
  if (moe.num_experts % moe.num_expert_groups != 0) {
    return Impossible(reader, "moe.num_expert_groups",
                      "{} groups do not divide {} experts, choose a divisor", moe.num_expert_groups,
                      moe.num_experts);
  }
  const int64_t group_size = moe.num_experts / moe.num_expert_groups;
  if (group_size < 2) {
    return Impossible(reader, "moe.num_expert_groups",
                      "a group is scored by its two best experts, so {} experts make at most {} "
                      "groups",
                      moe.num_experts, moe.num_experts / 2);
  }
  if (!reader.Has("moe.num_limited_groups")) {
    return Error(
        "missing key 'moe.num_limited_groups': {}: give how many of the {} groups a token "
        "may use",
        reader.Where("moe.num_expert_groups"), moe.num_expert_groups);
  }
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "moe.num_limited_groups", moe.num_limited_groups, 1,
                                    moe.num_expert_groups));
  if (moe.top_k > moe.num_limited_groups * group_size) {
    return Impossible(reader, "moe.top_k",
                      "{} groups of {} experts do not hold {} experts for a token, choose at most "
                      "{}",
                      moe.num_limited_groups, group_size, moe.top_k,
                      moe.num_limited_groups * group_size);
  }
  return Ok();
}

Status CheckMoe(const ConfigReader& reader, const MoeConfig& moe) {
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "moe.num_experts", moe.num_experts));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "moe.moe_hidden_dim", moe.moe_hidden_dim));
  STRATA_RETURN_IF_ERROR(
      CheckRange(reader, "moe.num_shared_experts", moe.num_shared_experts, 0, kMaxSize));
  if (moe.top_k < 1 || moe.top_k > moe.num_experts) {
    return Impossible(reader, "moe.top_k",
                      "a token cannot choose {} of {} experts, take from 1 to {}", moe.top_k,
                      moe.num_experts, moe.num_experts);
  }
  if (moe.num_shared_experts * moe.moe_hidden_dim > kMaxSize) {
    return Impossible(reader, "moe.num_shared_experts", "{} of width {} are too wide together",
                      moe.num_shared_experts, moe.moe_hidden_dim);
  }
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "moe.route_scale", moe.route_scale));
  if (moe.load_balance_coeff) {
    STRATA_RETURN_IF_ERROR(
        CheckPositive(reader, "moe.load_balance_coeff", *moe.load_balance_coeff));
  }
  return CheckGroups(reader, moe);
}

/// The sizes are checked by now, so sums and products of a few are exact enough in double.
Status CheckMemory(const TrainConfig& config, std::string_view file) {
  const auto dim = static_cast<double>(config.dim);
  const auto layers = static_cast<double>(config.n_layers);
  const auto heads = static_cast<double>(config.n_heads);
  const auto head_dim = static_cast<double>(config.head_dim);
  double attention = dim * head_dim * 2.0 * (heads + static_cast<double>(config.n_kv_heads));
  if (config.model == ModelFamily::kDeepSeekV3) {
    const auto q_rank = static_cast<double>(config.mla.q_lora_rank);
    const auto kv_rank = static_cast<double>(config.mla.kv_lora_rank);
    const auto v_dim = static_cast<double>(config.mla.v_head_dim);
    attention = heads * ((dim + q_rank) * head_dim + kv_rank * (head_dim + v_dim) + dim * v_dim) +
                dim * (q_rank + kv_rank + head_dim);
  }
  const auto dense_layers = config.moe ? static_cast<double>(config.n_dense_layers) : layers;
  double feed_forward = dense_layers * 3.0 * dim * static_cast<double>(config.hidden_dim);
  if (config.moe) {
    const auto experts =
        static_cast<double>(config.moe->num_experts + config.moe->num_shared_experts);
    const double expert = 3.0 * dim * static_cast<double>(config.moe->moe_hidden_dim) + dim;
    feed_forward += (layers - dense_layers) * experts * expert;
  }
  const double parameters =
      2.0 * dim * static_cast<double>(config.vocab_size) + layers * attention + feed_forward;
  if (parameters > kMaxElements) {
    return Error("model too large: {}: {:.2g} parameters, at most {:.2g} can be trained", file,
                 parameters, kMaxElements);
  }
  const double tokens =
      static_cast<double>(config.batch_size) * static_cast<double>(config.seq_len);
  const double logits = tokens * static_cast<double>(config.vocab_size);
  const double rope_table = static_cast<double>(config.rope.max_seq_len) * head_dim;
  const double routed = config.moe ? tokens * static_cast<double>(config.moe->top_k) * dim : 0.0;
  if (std::max({logits, rope_table, routed}) > kMaxElements) {
    return Error("step too large: {}: lower batch_size, seq_len or vocab_size", file);
  }
  return Ok();
}

/// A model of the user's: the file that has it, and sizes that a library may ask for.
void ReadOwnModel(ConfigReader& reader, TrainConfig& config) {
  const std::string_view name = Name(config.model);
  reader.Require("model_path", config.model_path);
  reader.Require("vocab_size", config.vocab_size);
  const bool has_sizes = config.model == ModelFamily::kLibrary;
  for (const auto& [key, size] : {NamedValue<int64_t*>{"dim", &config.dim},
                                  {"n_layers", &config.n_layers},
                                  {"n_heads", &config.n_heads},
                                  {"n_kv_heads", &config.n_kv_heads},
                                  {"hidden_dim", &config.hidden_dim}}) {
    if (has_sizes) {
      reader.Read(key, *size);
    } else {
      reader.Forbid(key, name);
    }
  }
  for (const std::string_view key : {"norm_eps", "qk_norm", "enable_weight_tying", "multiple_of",
                                     "ffn_dim_multiplier", "head_dim", "n_dense_layers"})
    reader.Forbid(key, name);
  reader.ForbidTable("moe", name);
  reader.ForbidTable("mla", name);
}

/// What only the models of this program can do.
Status CheckOwnModel(const ConfigReader& reader, const TrainConfig& config) {
  const auto refuse = [&](bool is_asked, std::string_view key, std::string_view advice) {
    return is_asked ? Status(Impossible(reader, key, "{}", advice)) : Ok();
  };
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "vocab_size", config.vocab_size, 2, kMaxSize));
  STRATA_RETURN_IF_ERROR(refuse(reader.HasTable("rope"), "rope",
                                "a model of yours has its own positions, remove the table"));
  const ParallelismConfig& parallelism = config.parallelism;
  STRATA_RETURN_IF_ERROR(refuse(parallelism.context > 1, "parallelism.context_parallel_degree",
                                "a model of yours has whole sequences, take 1"));
  STRATA_RETURN_IF_ERROR(refuse(parallelism.expert > 1, "parallelism.expert_parallel_degree",
                                "a model of yours has no experts that Strata knows, take 1"));
  STRATA_RETURN_IF_ERROR(refuse(parallelism.pipeline.degree > 1,
                                "parallelism.pipeline_parallel_degree",
                                "a model of yours is not cut into stages, take 1"));
  STRATA_RETURN_IF_ERROR(refuse(config.loss.name != LossFunction::kCrossEntropy, "loss.name",
                                "a model of yours has a whole loss, take 'cross_entropy'"));
  STRATA_RETURN_IF_ERROR(refuse(config.attn_type != AttentionType::kSdpa, "attn_type",
                                "a model of yours calls its own attention, remove it"));
  STRATA_RETURN_IF_ERROR(refuse(config.checkpoint.last_save_in_hf, "checkpoint.last_save_in_hf",
                                "Hugging Face's libraries do not know the model, take false"));
  if (config.model == ModelFamily::kLibrary) return Ok();
  STRATA_RETURN_IF_ERROR(refuse(config.device == DeviceKind::kCuda, "device",
                                "a program runs on the CPU, take 'cpu'"));
  STRATA_RETURN_IF_ERROR(refuse(config.accumulation_steps > 1, "training.global_batch_size",
                                "the loss of a program is a mean over its batch, take one batch"));
  STRATA_RETURN_IF_ERROR(refuse(config.validator.enable, "validator.enable",
                                "a program has no graph for validation, take false"));
  STRATA_RETURN_IF_ERROR(refuse(config.compile.symbolic_batch || config.compile.symbolic_seq,
                                "compile.symbolic_dims",
                                "a program has constant sizes, take 'none'"));
  return refuse(config.mixed_precision_param != Precision::kFloat32,
                "training.mixed_precision_param",
                "a program says itself what it computes in, take 'float32'");
}

}  // namespace

void ReadModel(ConfigReader& reader, TrainConfig& config) {
  reader.Read<InitScheme>("init",
                          {{"torchtitan", InitScheme::kTorchTitan},
                           {"torchtitan_sharpened", InitScheme::kTorchTitanSharpened}},
                          config.init);
  reader.Read<ModelFamily>("model",
                           {{Name(ModelFamily::kLlama3), ModelFamily::kLlama3},
                            {Name(ModelFamily::kQwen3), ModelFamily::kQwen3},
                            {Name(ModelFamily::kDeepSeekV3), ModelFamily::kDeepSeekV3},
                            {Name(ModelFamily::kProgram), ModelFamily::kProgram},
                            {Name(ModelFamily::kLibrary), ModelFamily::kLibrary}},
                           config.model);
  reader.RequireKey("model");
  if (config.HasOwnModel()) return ReadOwnModel(reader, config);
  reader.Forbid("model_path", Name(config.model));
  SetFamilyDefaults(config);
  reader.Require("dim", config.dim);
  reader.Require("n_layers", config.n_layers);
  reader.Require("n_heads", config.n_heads);
  reader.Read("n_kv_heads", config.n_kv_heads);
  reader.Require("vocab_size", config.vocab_size);
  reader.Read("hidden_dim", config.hidden_dim);
  reader.Read("norm_eps", config.norm_eps);
  reader.Read("qk_norm", config.qk_norm);
  reader.Read("enable_weight_tying", config.enable_weight_tying);

  const std::string_view name = Name(config.model);
  if (config.model == ModelFamily::kLlama3) {
    reader.Read("multiple_of", config.multiple_of);
    reader.Read("ffn_dim_multiplier", config.ffn_dim_multiplier);
    reader.ForbidTable("moe", name);
  } else {
    reader.Forbid("multiple_of", name);
    reader.Forbid("ffn_dim_multiplier", name);
    ReadMoe(reader, config.moe);
  }
  if (config.model == ModelFamily::kDeepSeekV3) {
    reader.Forbid("head_dim", name);
    reader.Read("n_dense_layers", config.n_dense_layers);
    ReadMla(reader, config.mla);
  } else {
    reader.Read("head_dim", config.head_dim);
    reader.Forbid("n_dense_layers", name);
    reader.ForbidTable("mla", name);
  }
}

Status CompleteModel(const ConfigReader& reader, std::string_view file, TrainConfig& config) {
  if (config.HasOwnModel()) return CheckOwnModel(reader, config);
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "dim", config.dim));
  STRATA_RETURN_IF_ERROR(CheckRange(reader, "n_layers", config.n_layers, 1, kMaxLayers));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "n_heads", config.n_heads));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "vocab_size", config.vocab_size));
  if (config.vocab_size < 2) {
    return Impossible(reader, "vocab_size", "with one token there is nothing to learn, take more");
  }
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "norm_eps", config.norm_eps));
  STRATA_RETURN_IF_ERROR(config.model == ModelFamily::kDeepSeekV3
                             ? CompleteLatentHeads(reader, config)
                             : CompleteHeads(reader, config));
  if (config.model == ModelFamily::kDeepSeekV3) {
    STRATA_RETURN_IF_ERROR(
        CheckRange(reader, "n_dense_layers", config.n_dense_layers, 0, config.n_layers));
    if (config.n_dense_layers < config.n_layers && !config.moe) {
      return Error("missing table 'moe': {}: describe the experts, or take n_dense_layers {}", file,
                   config.n_layers);
    }
  }
  if (config.moe) STRATA_RETURN_IF_ERROR(CheckMoe(reader, *config.moe));
  STRATA_RETURN_IF_ERROR(CompleteFeedForward(reader, config));
  return CheckMemory(config, file);
}

}  // namespace strata

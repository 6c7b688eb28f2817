#include "runtime/train/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/file.h"
#include "runtime/train/config_reader.h"
#include "runtime/train/config_tree.h"

namespace strata {
namespace {

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxLayers = 10'000;
// 4 TiB of fp32: what is larger is a slip of the keyboard, and products of sizes cannot overflow.
constexpr double kMaxElements = 0x1p40;

ConfigFormat FormatOf(const std::string& path, std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_object = first != std::string_view::npos && text[first] == '{';
  return path.ends_with(".json") || is_object ? ConfigFormat::kJson : ConfigFormat::kToml;
}

void ReadFamily(ConfigReader& reader, TrainConfig& config) {
  std::initializer_list<NamedValue<ModelFamily>> families = {
      {Name(ModelFamily::kLlama3), ModelFamily::kLlama3},
      {Name(ModelFamily::kQwen3), ModelFamily::kQwen3},
      {Name(ModelFamily::kDeepSeekV3), ModelFamily::kDeepSeekV3}};
  reader.Read("model", families, config.model);
  reader.RequireKey("model");
}

void ReadModel(ConfigReader& reader, TrainConfig& config) {
  reader.Require("dim", config.dim);
  reader.Require("n_layers", config.n_layers);
  reader.Require("n_heads", config.n_heads);
  reader.Read("n_kv_heads", config.n_kv_heads);
  reader.Read("head_dim", config.head_dim);
  reader.Require("vocab_size", config.vocab_size);
  reader.Read("hidden_dim", config.hidden_dim);
  reader.Read("norm_eps", config.norm_eps);
  reader.Read("enable_weight_tying", config.enable_weight_tying);
  reader.Check<bool>("qk_norm");
}

void ReadRope(ConfigReader& reader, RopeConfig& rope) {
  reader.Table("rope");
  reader.Read("rope.theta", rope.theta);
  reader.Read<RopeBackend>("rope.backend",
                           {{"complex", RopeBackend::kComplex}, {"cos_sin", RopeBackend::kCosSin}},
                           rope.backend);
  reader.Read<RopeScaling>(
      "rope.scaling",
      {{"none", RopeScaling::kNone}, {"llama", RopeScaling::kLlama}, {"yarn", RopeScaling::kYarn}},
      rope.scaling);
  reader.Read("rope.max_seq_len", rope.max_seq_len);
  reader.Read("rope.scaling_factor", rope.scaling_factor);
  reader.Read("rope.low_freq_factor", rope.low_freq_factor);
  reader.Read("rope.high_freq_factor", rope.high_freq_factor);
  reader.Read("rope.original_max_position_embeddings", rope.original_max_position_embeddings);
  reader.Read("rope.rope_factor", rope.rope_factor);
  reader.Read("rope.beta_fast", rope.beta_fast);
  reader.Read("rope.beta_slow", rope.beta_slow);
  reader.Read("rope.original_seq_len", rope.original_seq_len);
}

void ReadTraining(ConfigReader& reader, TrainConfig& config) {
  reader.Read<InitScheme>("init",
                          {{"torchtitan", InitScheme::kTorchTitan},
                           {"torchtitan_sharpened", InitScheme::kTorchTitanSharpened}},
                          config.init);
  enum class OptimizerName : uint8_t { kAdamW };
  OptimizerName name = OptimizerName::kAdamW;
  OptimizerConfig& optimizer = config.optimizer;
  reader.Table("optimizer");
  reader.Read<OptimizerName>("optimizer.name", {{"AdamW", OptimizerName::kAdamW}}, name);
  reader.Read("optimizer.lr", optimizer.lr);
  reader.Read("optimizer.beta1", optimizer.beta1);
  reader.Read("optimizer.beta2", optimizer.beta2);
  reader.Read("optimizer.eps", optimizer.eps);
  reader.Read("optimizer.weight_decay", optimizer.weight_decay);
  reader.Read("optimizer.max_grad_norm", optimizer.max_grad_norm);
  reader.Require("steps", config.steps);
  reader.Require("seq_len", config.seq_len);
  reader.Require("batch_size", config.batch_size);
  reader.Read("seed", config.seed);
}

enum class FieldType : uint8_t { kBool, kInteger, kNumber, kTable, kScore };

/// A field that not every model has and no model of this build needs. Checked for name and type all
/// the same, so that a misspelling in a configuration of another model is told as such.
struct ModelField {
  std::string_view key;
  FieldType type;
  bool is_of_qwen3;
  bool is_of_deepseek;
};

constexpr ModelField kModelFields[] = {
    {"moe", FieldType::kTable, true, true},
    {"moe.num_experts", FieldType::kInteger, true, true},
    {"moe.top_k", FieldType::kInteger, true, true},
    {"moe.moe_hidden_dim", FieldType::kInteger, true, true},
    {"moe.num_shared_experts", FieldType::kInteger, true, true},
    {"moe.score_func", FieldType::kScore, true, true},
    {"moe.route_norm", FieldType::kBool, true, true},
    {"moe.route_scale", FieldType::kNumber, true, true},
    {"moe.num_expert_groups", FieldType::kInteger, true, true},
    {"moe.num_limited_groups", FieldType::kInteger, true, true},
    {"moe.score_before_experts", FieldType::kBool, true, true},
    {"moe.load_balance_coeff", FieldType::kNumber, true, true},
    {"n_dense_layers", FieldType::kInteger, false, true},
    {"mla", FieldType::kTable, false, true},
    {"mla.q_lora_rank", FieldType::kInteger, false, true},
    {"mla.kv_lora_rank", FieldType::kInteger, false, true},
    {"mla.qk_nope_head_dim", FieldType::kInteger, false, true},
    {"mla.qk_rope_head_dim", FieldType::kInteger, false, true},
    {"mla.v_head_dim", FieldType::kInteger, false, true},
    {"mla.mscale", FieldType::kNumber, false, true},
};

void CheckField(ConfigReader& reader, const ModelField& field) {
  switch (field.type) {
    case FieldType::kBool:
      return reader.Check<bool>(field.key);
    case FieldType::kInteger:
      return reader.Check<int64_t>(field.key);
    case FieldType::kNumber:
      return reader.Check<double>(field.key);
    case FieldType::kTable:
      return reader.Table(field.key);
    case FieldType::kScore: {
      bool is_sigmoid = false;
      return reader.Read<bool>(field.key, {{"softmax", false}, {"sigmoid", true}}, is_sigmoid);
    }
  }
}

void ReadModelFields(ConfigReader& reader, TrainConfig& config) {
  for (const ModelField& field : kModelFields) {
    const bool has_field = (config.model == ModelFamily::kQwen3 && field.is_of_qwen3) ||
                           (config.model == ModelFamily::kDeepSeekV3 && field.is_of_deepseek);
    if (has_field) {
      CheckField(reader, field);
    } else {
      reader.Forbid(field.key, Name(config.model));
    }
  }
  if (config.model == ModelFamily::kLlama3) {
    reader.Read("multiple_of", config.multiple_of);
    reader.Read("ffn_dim_multiplier", config.ffn_dim_multiplier);
  } else {
    reader.Forbid("multiple_of", Name(config.model));
    reader.Forbid("ffn_dim_multiplier", Name(config.model));
  }
}

template <class... Args>
Error Impossible(const ConfigReader& reader, std::string_view key,
                 fmt::format_string<Args...> advice, Args&&... args) {
  return Error("impossible value for '{}': {}: {}", key, reader.Where(key),
               fmt::format(advice, std::forward<Args>(args)...));
}

Status CheckSize(const ConfigReader& reader, std::string_view key, int64_t size,
                 int64_t limit = kMaxSize) {
  if (size >= 1 && size <= limit) return Ok();
  return Impossible(reader, key, "{} must be from 1 to {}", size, limit);
}

Status CheckPositive(const ConfigReader& reader, std::string_view key, double value) {
  if (value > 0.0) return Ok();
  return Impossible(reader, key, "{} must be more than 0", value);
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

/// Fills in what the text left open. Checks what the derivations need.
Status CompleteModel(const ConfigReader& reader, TrainConfig& config) {
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "dim", config.dim));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "n_heads", config.n_heads));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "multiple_of", config.multiple_of));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "seq_len", config.seq_len));
  if (config.dim % config.n_heads != 0) {
    return Impossible(reader, "n_heads", "{} heads do not divide dim {}, choose a divisor of it",
                      config.n_heads, config.dim);
  }
  if (config.ffn_dim_multiplier) {
    STRATA_RETURN_IF_ERROR(CheckPositive(reader, "ffn_dim_multiplier", *config.ffn_dim_multiplier));
  }
  if (!reader.Has("n_kv_heads")) config.n_kv_heads = config.n_heads;
  if (!reader.Has("head_dim")) config.head_dim = config.dim / config.n_heads;
  if (!reader.Has("hidden_dim")) config.hidden_dim = DeriveHiddenDim(config);
  if (!reader.Has("rope.max_seq_len")) config.rope.max_seq_len = config.seq_len;
  return Ok();
}

Status CheckModel(const ConfigReader& reader, const TrainConfig& config) {
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "n_layers", config.n_layers, kMaxLayers));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "n_kv_heads", config.n_kv_heads));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "head_dim", config.head_dim));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "hidden_dim", config.hidden_dim));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "vocab_size", config.vocab_size));
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "norm_eps", config.norm_eps));
  if (config.n_heads % config.n_kv_heads != 0) {
    return Impossible(reader, "n_kv_heads",
                      "{} key/value heads do not divide n_heads {}, choose a divisor of it",
                      config.n_kv_heads, config.n_heads);
  }
  if (config.head_dim % 2 != 0) {
    return Impossible(reader, reader.Has("head_dim") ? "head_dim" : "n_heads",
                      "rotary embeddings turn pairs, so head_dim {} must be even", config.head_dim);
  }
  if (config.vocab_size < 2) {
    return Impossible(reader, "vocab_size", "with one token there is nothing to learn, take more");
  }
  if (reader.IsTrue("qk_norm")) {
    return Impossible(reader, "qk_norm", "llama3 has no norms of queries and keys, take false");
  }
  return Ok();
}

Status CheckRope(const ConfigReader& reader, const TrainConfig& config) {
  const RopeConfig& rope = config.rope;
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.theta", rope.theta));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "rope.max_seq_len", rope.max_seq_len));
  if (rope.max_seq_len < config.seq_len) {
    return Impossible(reader, "rope.max_seq_len", "{} positions do not hold seq_len {}",
                      rope.max_seq_len, config.seq_len);
  }
  if (rope.scaling == RopeScaling::kYarn) {
    return Error(ErrorCode::kUnsupported,
                 "no such rope scaling for llama3: {}: choose 'none' or 'llama', not 'yarn'",
                 reader.Where("rope.scaling"));
  }
  if (rope.scaling != RopeScaling::kLlama) return Ok();
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.scaling_factor", rope.scaling_factor));
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "rope.low_freq_factor", rope.low_freq_factor));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "rope.original_max_position_embeddings",
                                   rope.original_max_position_embeddings));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return Impossible(reader, "rope.high_freq_factor", "{} must be more than low_freq_factor {}",
                      rope.high_freq_factor, rope.low_freq_factor);
  }
  return Ok();
}

Status CheckTraining(const ConfigReader& reader, const TrainConfig& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "steps", config.steps));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "batch_size", config.batch_size));
  for (const auto& [key, beta] :
       {NamedValue{"optimizer.beta1", optimizer.beta1}, {"optimizer.beta2", optimizer.beta2}}) {
    if (beta >= 0.0 && beta < 1.0) continue;
    return Impossible(reader, key, "{} must be at least 0 and less than 1", beta);
  }
  for (const auto& [key, value] : {NamedValue{"optimizer.lr", optimizer.lr},
                                   {"optimizer.weight_decay", optimizer.weight_decay}}) {
    if (value < 0.0) return Impossible(reader, key, "{} must be at least 0", value);
  }
  STRATA_RETURN_IF_ERROR(CheckPositive(reader, "optimizer.eps", optimizer.eps));
  if (optimizer.max_grad_norm) {
    return CheckPositive(reader, "optimizer.max_grad_norm", *optimizer.max_grad_norm);
  }
  return Ok();
}

/// Every size is below 2^31 by now, so sums and products of two or three are exact enough in
/// double.
Status CheckMemory(const TrainConfig& config, std::string_view file) {
  const auto dim = static_cast<double>(config.dim);
  const auto layers = static_cast<double>(config.n_layers);
  const auto head_dim = static_cast<double>(config.head_dim);
  const double attention =
      dim * head_dim * 2.0 * static_cast<double>(config.n_heads + config.n_kv_heads);
  const double feed_forward = 3.0 * dim * static_cast<double>(config.hidden_dim);
  const double parameters =
      2.0 * dim * static_cast<double>(config.vocab_size) + layers * (attention + feed_forward);
  if (parameters > kMaxElements) {
    return Error("model too large: {}: {:.2g} parameters, at most {:.2g} can be trained", file,
                 parameters, kMaxElements);
  }
  const double logits = static_cast<double>(config.batch_size) *
                        static_cast<double>(config.seq_len) *
                        static_cast<double>(config.vocab_size);
  const double rope_table = static_cast<double>(config.rope.max_seq_len) * head_dim;
  if (std::max(logits, rope_table) > kMaxElements) {
    return Error("step too large: {}: lower batch_size, seq_len or vocab_size", file);
  }
  return Ok();
}

}  // namespace

std::string_view Name(ModelFamily model) {
  switch (model) {
    case ModelFamily::kLlama3:
      return "llama3";
    case ModelFamily::kQwen3:
      return "qwen3";
    case ModelFamily::kDeepSeekV3:
      return "deepseek_v3";
  }
  return "";
}

Result<TrainConfig> LoadTrainConfig(const std::string& path,
                                    std::span<const std::string> overrides) {
  STRATA_TRY(const std::string text, ReadFile(path));
  return ParseTrainConfig(text, FormatOf(path, text), path, overrides);
}

Result<TrainConfig> ParseTrainConfig(std::string_view text, ConfigFormat format,
                                     std::string_view file,
                                     std::span<const std::string> overrides) {
  STRATA_TRY(std::vector<ConfigEntry> entries, ParseConfigEntries(text, format, file));
  for (const std::string& assignment : overrides) {
    STRATA_RETURN_IF_ERROR(OverrideEntry(assignment, entries));
  }

  ConfigReader reader(std::move(entries), file);
  TrainConfig config;
  ReadFamily(reader, config);
  ReadModel(reader, config);
  ReadModelFields(reader, config);
  ReadRope(reader, config.rope);
  ReadTraining(reader, config);
  STRATA_RETURN_IF_ERROR(reader.Finish());

  if (config.model != ModelFamily::kLlama3) {
    return Error(ErrorCode::kUnsupported,
                 "model '{}' is not available yet: {}: this build trains llama3",
                 Name(config.model), reader.Where("model"));
  }
  STRATA_RETURN_IF_ERROR(CompleteModel(reader, config));
  STRATA_RETURN_IF_ERROR(CheckModel(reader, config));
  STRATA_RETURN_IF_ERROR(CheckRope(reader, config));
  STRATA_RETURN_IF_ERROR(CheckTraining(reader, config));
  STRATA_RETURN_IF_ERROR(CheckMemory(config, file));
  return config;
}

}  // namespace strata

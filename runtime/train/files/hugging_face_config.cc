#include "runtime/train/files/hugging_face_config.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include <fmt/format.h>

#include "base/json.h"
#include "base/python_literal.h"

namespace strata {
namespace {

/// A JSON object. Numbers that are not integers have a point, as the library wants them.
class Object {
 public:
  /// `separator` between members: `,\n  ` or `, `.
  explicit Object(std::string_view separator) : separator_(separator) {}

  void Add(std::string_view key, std::string_view text) { AppendJsonString(text, Begin(key)); }
  void Add(std::string_view key, const char* text) { Add(key, std::string_view(text)); }
  void Add(std::string_view key, double number) { AppendFloat(number, Begin(key)); }
  void Add(std::string_view key, int64_t number) { Begin(key) += std::to_string(number); }
  void Add(std::string_view key, bool flag) { Begin(key) += flag ? "true" : "false"; }
  void AddNull(std::string_view key) { Begin(key) += "null"; }
  void Add(std::string_view key, const Object& object) {
    Begin(key) += fmt::format("{{{}}}", object.members());
  }
  /// An array of texts.
  void Add(std::string_view key, std::initializer_list<std::string_view> texts) {
    std::string& out = Begin(key) += '[';
    for (const std::string_view text : texts)
      AppendJsonString(text, out);
    out += ']';
  }

  const std::string& members() const { return members_; }

 private:
  std::string& Begin(std::string_view key) {
    if (!members_.empty()) members_ += separator_;
    AppendJsonString(key, members_);
    return members_ += ": ";
  }

  std::string_view separator_;
  std::string members_;
};

/// Names of the fields are those of the library's rotary embeddings.
void AddRope(const RopeConfig& rope, double mscale, Object& out) {
  out.Add("rope_theta", rope.theta);
  if (rope.max_seq_len > 1) out.Add("max_position_embeddings", rope.max_seq_len);
  const bool is_stretched = rope.scaling == RopeScaling::kLlama ||
                            (rope.scaling == RopeScaling::kYarn && rope.rope_factor > 1.0);
  if (!is_stretched) return out.AddNull("rope_scaling");
  Object scaling(", ");
  if (rope.scaling == RopeScaling::kLlama) {
    scaling.Add("rope_type", "llama3");
    scaling.Add("factor", rope.scaling_factor);
    scaling.Add("low_freq_factor", rope.low_freq_factor);
    scaling.Add("high_freq_factor", rope.high_freq_factor);
    scaling.Add("original_max_position_embeddings", rope.original_max_position_embeddings);
  } else {
    scaling.Add("rope_type", "yarn");
    scaling.Add("factor", rope.rope_factor);
    scaling.Add("original_max_position_embeddings", rope.original_seq_len);
    scaling.Add("beta_fast", rope.beta_fast);
    scaling.Add("beta_slow", rope.beta_slow);
    // Angles alone are stretched; scores are scaled by mscale_all_dim.
    scaling.Add("attention_factor", 1.0);
    if (mscale > 0.0) {
      scaling.Add("mscale", mscale);
      scaling.Add("mscale_all_dim", mscale);
    }
  }
  out.Add("rope_scaling", scaling);
}

void AddQwenExperts(const MoeConfig& moe, Object& out) {
  out.Add("num_experts", moe.num_experts);
  out.Add("num_experts_per_tok", moe.top_k);
  out.Add("moe_intermediate_size", moe.moe_hidden_dim);
  out.Add("norm_topk_prob", moe.route_norm);
  out.Add("decoder_sparse_step", int64_t{1});
  out.Add("mlp_only_layers", std::initializer_list<std::string_view>{});
}

void AddLatentAttention(const TrainConfig& config, Object& out) {
  const MlaConfig& mla = config.mla;
  if (mla.q_lora_rank > 0) {
    out.Add("q_lora_rank", mla.q_lora_rank);
  } else {
    out.AddNull("q_lora_rank");
  }
  out.Add("kv_lora_rank", mla.kv_lora_rank);
  out.Add("qk_nope_head_dim", mla.qk_nope_head_dim);
  out.Add("qk_rope_head_dim", mla.qk_rope_head_dim);
  out.Add("v_head_dim", mla.v_head_dim);
  out.Add("rope_interleave", config.rope.backend == RopeBackend::kComplex);
}

void AddDeepSeekExperts(const TrainConfig& config, Object& out) {
  out.Add("first_k_dense_replace", config.n_dense_layers);
  if (!config.moe) return;
  const MoeConfig& moe = *config.moe;
  out.Add("n_routed_experts", moe.num_experts);
  out.Add("n_shared_experts", moe.num_shared_experts);
  out.Add("num_experts_per_tok", moe.top_k);
  out.Add("moe_intermediate_size", moe.moe_hidden_dim);
  out.Add("n_group", std::max<int64_t>(moe.num_expert_groups, 1));
  out.Add("topk_group", std::max<int64_t>(moe.num_limited_groups, 1));
  out.Add("topk_method", "noaux_tc");
  out.Add("scoring_func", moe.score_func == ScoreFunction::kSigmoid ? "sigmoid" : "softmax");
  out.Add("norm_topk_prob", moe.route_norm);
  out.Add("routed_scaling_factor", moe.route_scale);
}

std::string_view TypeName(ExportType dtype) {
  switch (dtype) {
    case ExportType::kFloat32:
      return "float32";
    case ExportType::kBFloat16:
      return "bfloat16";
    case ExportType::kFloat16:
      return "float16";
  }
  return "";
}

std::string_view ModelType(const TrainConfig& config) {
  switch (config.model) {
    case ModelFamily::kLlama3:
      return "llama";
    case ModelFamily::kQwen3:
      return config.moe ? "qwen3_moe" : "qwen3";
    case ModelFamily::kDeepSeekV3:
      return "deepseek_v3";
    case ModelFamily::kProgram:
    case ModelFamily::kLibrary:
      break;
  }
  return "";
}

}  // namespace

std::string_view ArchitectureOf(const TrainConfig& config) {
  switch (config.model) {
    case ModelFamily::kLlama3:
      return "LlamaForCausalLM";
    case ModelFamily::kQwen3:
      return config.moe ? "Qwen3MoeForCausalLM" : "Qwen3ForCausalLM";
    case ModelFamily::kDeepSeekV3:
      return "DeepseekV3ForCausalLM";
    case ModelFamily::kProgram:
    case ModelFamily::kLibrary:
      break;
  }
  return "";
}

std::string HuggingFaceConfig(const TrainConfig& config, ExportType dtype) {
  const bool is_latent = config.model == ModelFamily::kDeepSeekV3;
  Object out(",\n  ");
  out.Add("architectures", {ArchitectureOf(config)});
  out.Add("model_type", ModelType(config));
  out.Add("torch_dtype", TypeName(dtype));
  out.Add("vocab_size", config.vocab_size);
  out.Add("hidden_size", config.dim);
  // A model of experts alone has no dense layer.
  out.Add("intermediate_size",
          config.hidden_dim > 0 || !config.moe ? config.hidden_dim : config.moe->moe_hidden_dim);
  out.Add("num_hidden_layers", config.n_layers);
  out.Add("num_attention_heads", config.n_heads);
  out.Add("num_key_value_heads", config.n_kv_heads);
  if (!is_latent) out.Add("head_dim", config.head_dim);
  out.Add("hidden_act", "silu");
  out.Add("rms_norm_eps", config.norm_eps);
  out.Add("attention_bias", false);
  if (config.model == ModelFamily::kLlama3) out.Add("mlp_bias", false);
  out.Add("tie_word_embeddings", config.enable_weight_tying);
  AddRope(config.rope, is_latent ? config.mla.mscale : 0.0, out);
  if (is_latent) {
    AddLatentAttention(config, out);
    AddDeepSeekExperts(config, out);
  } else if (config.moe) {
    AddQwenExperts(*config.moe, out);
  }
  return fmt::format("{{\n  {}\n}}\n", out.members());
}

HuggingFaceLimits LimitsOfHuggingFace(const TrainConfig& config) {
  HuggingFaceLimits limits;
  const auto warn = [&](bool is_other, std::string_view key, std::string_view instead) {
    if (!is_other) return;
    limits.warnings.push_back(
        fmt::format("{} does not compute {}: {}", ArchitectureOf(config), key, instead));
  };
  const bool is_qwen = config.model == ModelFamily::kQwen3;
  warn(is_qwen && !config.qk_norm, "qk_norm = false", "it normalizes queries and keys");
  if (!config.moe) return limits;
  const MoeConfig& moe = *config.moe;
  warn(moe.score_before_experts, "moe.score_before_experts = true",
       "scores multiply what experts return");
  warn(is_qwen && moe.score_func != ScoreFunction::kSoftmax, "moe.score_func = 'sigmoid'",
       "its scores are a softmax");
  warn(!is_qwen && moe.score_func != ScoreFunction::kSigmoid, "moe.score_func = 'softmax'",
       "its scores are sigmoids");
  warn(is_qwen && moe.route_scale != 1.0, "moe.route_scale", "it does not scale the scores");
  warn(is_qwen && moe.num_shared_experts > 0, "moe.num_shared_experts", "it has no shared experts");
  warn(!is_qwen && moe.num_shared_experts == 0, "moe.num_shared_experts = 0",
       "it has at least one shared expert");
  warn(is_qwen && moe.num_expert_groups > 0, "moe.num_expert_groups", "a token may use all groups");
  if (is_qwen) limits.missing_tensor = "moe.expert_bias";
  return limits;
}

}  // namespace strata

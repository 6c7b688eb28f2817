#include "runtime/config/course.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

/// Collects fields under the name of their table.
class Fields {
 public:
  /// `prefix`: of the keys that follow, `rope.` or empty.
  void In(std::string_view prefix) { prefix_ = prefix; }

  template <class T>
  void Add(std::string_view key, const T& value) {
    fields.emplace(fmt::format("{}{}", prefix_, key), fmt::format("{}", value));
  }
  void Add(std::string_view key, const std::optional<double>& value) {
    Add(key, value ? fmt::format("{}", *value) : std::string("none"));
  }

  std::map<std::string, std::string> fields;

 private:
  std::string prefix_;
};

void AddModel(const TrainConfig& config, Fields& out) {
  out.Add("model", Name(config.model));
  if (config.HasOwnModel()) out.Add("model_path", config.model_path);
  out.Add("dim", config.dim);
  out.Add("n_layers", config.n_layers);
  out.Add("n_heads", config.n_heads);
  out.Add("n_kv_heads", config.n_kv_heads);
  out.Add("head_dim", config.head_dim);
  out.Add("vocab_size", config.vocab_size);
  out.Add("hidden_dim", config.hidden_dim);
  out.Add("norm_eps", config.norm_eps);
  out.Add("qk_norm", config.qk_norm);
  out.Add("enable_weight_tying", config.enable_weight_tying);
  out.Add("attn_mask_type",
          config.attn_mask_type == AttentionMask::kCausal ? "causal" : "block_causal");
  if (config.dtype != Precision::kFloat32) out.Add("training.dtype", Name(config.dtype));
  out.Add("training.mixed_precision_param", Name(config.mixed_precision_param));
  // The files of bodies may change between runs: what counts is their content.
  if (config.attn_type == AttentionType::kFlex) {
    out.Add("flex.mask_mod", config.flex.mask_mod_text);
    out.Add("flex.score_mod", config.flex.score_mod_text);
  }
}

void AddRope(const RopeConfig& rope, Fields& out) {
  out.In("rope.");
  out.Add("max_seq_len", rope.max_seq_len);
  out.Add("theta", rope.theta);
  out.Add("backend", rope.backend == RopeBackend::kComplex ? "complex" : "cos_sin");
  switch (rope.scaling) {
    case RopeScaling::kNone:
      out.Add("scaling", "none");
      return;
    case RopeScaling::kLlama:
      out.Add("scaling", "llama");
      out.Add("scaling_factor", rope.scaling_factor);
      out.Add("low_freq_factor", rope.low_freq_factor);
      out.Add("high_freq_factor", rope.high_freq_factor);
      out.Add("original_max_position_embeddings", rope.original_max_position_embeddings);
      return;
    case RopeScaling::kYarn:
      out.Add("scaling", "yarn");
      out.Add("rope_factor", rope.rope_factor);
      out.Add("beta_fast", rope.beta_fast);
      out.Add("beta_slow", rope.beta_slow);
      out.Add("original_seq_len", rope.original_seq_len);
      return;
  }
}

void AddMla(const MlaConfig& mla, Fields& out) {
  out.In("mla.");
  out.Add("q_lora_rank", mla.q_lora_rank);
  out.Add("kv_lora_rank", mla.kv_lora_rank);
  out.Add("qk_nope_head_dim", mla.qk_nope_head_dim);
  out.Add("qk_rope_head_dim", mla.qk_rope_head_dim);
  out.Add("v_head_dim", mla.v_head_dim);
  out.Add("mscale", mla.mscale);
}

void AddMoe(const MoeConfig& moe, int64_t n_dense_layers, Fields& out) {
  out.In("");
  out.Add("n_dense_layers", n_dense_layers);
  out.Add("debug.moe_force_load_balance", moe.force_load_balance);
  out.In("moe.");
  out.Add("num_experts", moe.num_experts);
  out.Add("top_k", moe.top_k);
  out.Add("moe_hidden_dim", moe.moe_hidden_dim);
  out.Add("num_shared_experts", moe.num_shared_experts);
  out.Add("score_func", moe.score_func == ScoreFunction::kSoftmax ? "softmax" : "sigmoid");
  out.Add("route_norm", moe.route_norm);
  out.Add("route_scale", moe.route_scale);
  out.Add("num_expert_groups", moe.num_expert_groups);
  out.Add("num_limited_groups", moe.num_limited_groups);
  out.Add("score_before_experts", moe.score_before_experts);
  out.Add("load_balance_coeff", moe.load_balance_coeff);
}

void AddAdamW(const AdamWConfig& adamw, Fields& out) {
  out.Add("lr", adamw.lr);
  out.Add("beta1", adamw.beta1);
  out.Add("beta2", adamw.beta2);
  out.Add("eps", adamw.eps);
  out.Add("weight_decay", adamw.weight_decay);
}

void AddOptimizer(const OptimizerConfig& optimizer, Fields& out) {
  out.In("optimizer.");
  AddAdamW(optimizer, out);
  out.Add("max_grad_norm", optimizer.max_grad_norm);
  for (const ParamGroup& group : optimizer.param_groups) {
    out.In(fmt::format("optimizer.param_groups.{}.", group.name));
    out.Add("pattern", group.pattern);
    AddAdamW(group.adamw, out);
  }
}

void AddSchedule(const TrainConfig& config, Fields& out) {
  out.In("training.");
  out.Add("num_tokens_per_train_step",
          config.accumulation_steps * config.batch_size * config.seq_len);
  if (!config.lr_scheduler) return;
  const LrSchedulerConfig& scheduler = *config.lr_scheduler;
  out.In("lr_scheduler.");
  out.Add("warmup_steps", scheduler.warmup_steps);
  out.Add("total_steps", scheduler.total_steps);
  out.Add("decay_ratio", scheduler.decay_ratio);
  out.Add("decay_type", scheduler.decay_type == DecayType::kLinear ? "linear"
                        : scheduler.decay_type == DecayType::kSqrt ? "sqrt"
                                                                   : "cosine");
  out.Add("min_lr_factor", scheduler.min_lr_factor);
}

/// A field that says what the model computes, not how it is trained.
bool IsOfModel(std::string_view key) {
  constexpr std::string_view kKeys[] = {
      "model",      "dim",        "n_layers", "n_heads", "n_kv_heads",          "head_dim",
      "vocab_size", "hidden_dim", "norm_eps", "qk_norm", "enable_weight_tying", "n_dense_layers"};
  return std::ranges::find(kKeys, key) != std::end(kKeys) || key.starts_with("rope.") ||
         key.starts_with("mla.") || key.starts_with("moe.");
}

}  // namespace

std::map<std::string, std::string> CourseFields(const TrainConfig& config) {
  Fields out;
  AddModel(config, out);
  AddRope(config.rope, out);
  if (config.model == ModelFamily::kDeepSeekV3) AddMla(config.mla, out);
  if (config.moe) AddMoe(*config.moe, config.n_dense_layers, out);
  AddOptimizer(config.optimizer, out);
  AddSchedule(config, out);
  return std::move(out.fields);
}

Result<TrainConfig> ModelOfCourse(const std::map<std::string, std::string>& fields) {
  std::vector<std::string> sets = {"steps=1", "batch_size=1"};
  const auto of = [&](const std::string& key) {
    const auto found = fields.find(key);
    return found == fields.end() ? std::string() : found->second;
  };
  const std::string length = of("rope.max_seq_len");
  sets.push_back(fmt::format("seq_len={}", length.empty() ? "1" : length));
  for (const auto& [key, value] : fields) {
    if (!IsOfModel(key) || (value == "none" && key != "rope.scaling")) continue;
    const bool is_absent = value == "0" && (key.ends_with("_groups") || key == "hidden_dim");
    const bool is_other = key == "n_dense_layers" && of("model") != "deepseek_v3";
    const bool is_derived = key == "head_dim" && of("model") == "deepseek_v3";
    if (!is_absent && !is_other && !is_derived) sets.push_back(fmt::format("{}={}", key, value));
  }
  const bool is_dense = of("model") == "deepseek_v3" && !fields.contains("moe.num_experts");
  if (is_dense) sets.push_back(fmt::format("n_dense_layers={}", of("n_layers")));
  return ParseTrainConfig("{}", ConfigFormat::kJson, "the checkpoint's configuration", sets);
}

std::string ChangesSince(const std::map<std::string, std::string>& before,
                         const TrainConfig& config) {
  constexpr std::string_view kAbsent = "none";
  const std::map<std::string, std::string> now = CourseFields(config);
  const bool ends_with_run =
      config.lr_scheduler && config.lr_scheduler->total_steps == config.steps;
  std::map<std::string_view, std::pair<std::string_view, std::string_view>> values;
  for (const auto& [key, value] : before)
    values[key] = {value, kAbsent};
  for (const auto& [key, value] : now)
    values.try_emplace(key, kAbsent, value).first->second.second = value;
  std::string text;
  for (const auto& [key, value] : values) {
    if (value.first == value.second) continue;
    if (key == "lr_scheduler.total_steps" && ends_with_run) continue;
    if (key == "rope.max_seq_len") continue;  // positions have the same angles in a longer table
    text += fmt::format("{}{} is {}, was {}", text.empty() ? "" : "; ", OneLine(key), value.second,
                        OneLine(value.first));
  }
  return text;
}

}  // namespace strata

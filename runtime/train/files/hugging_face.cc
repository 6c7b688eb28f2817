#include "runtime/train/files/hugging_face.h"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace strata {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

/// Of the whole model.
constexpr Pair kOutside[] = {
    {"tok_embeddings.weight", "model.embed_tokens.weight"},
    {"norm.weight", "model.norm.weight"},
    {"lm_head.weight", "lm_head.weight"},
};

/// Of `layers.N.` and `model.layers.N.`; a name belongs to one family at most.
constexpr Pair kInLayer[] = {
    {"attention_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attention.qkv_linear.wq.weight", "self_attn.q_proj.weight"},
    {"attention.qkv_linear.wk.weight", "self_attn.k_proj.weight"},
    {"attention.qkv_linear.wv.weight", "self_attn.v_proj.weight"},
    {"attention.k_norm.weight", "self_attn.k_norm.weight"},
    {"attention.wo.weight", "self_attn.o_proj.weight"},
    {"attention.wq.weight", "self_attn.q_proj.weight"},
    {"attention.wq_a.weight", "self_attn.q_a_proj.weight"},
    {"attention.wq_b.weight", "self_attn.q_b_proj.weight"},
    {"attention.wkv_a.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    {"attention.kv_norm.weight", "self_attn.kv_a_layernorm.weight"},
    {"attention.wkv_b.weight", "self_attn.kv_b_proj.weight"},
    {"feed_forward.w1.weight", "mlp.gate_proj.weight"},
    {"feed_forward.w2.weight", "mlp.down_proj.weight"},
    {"feed_forward.w3.weight", "mlp.up_proj.weight"},
    {"moe.router.gate.weight", "mlp.gate.weight"},
    {"moe.expert_bias", "mlp.gate.e_score_correction_bias"},
    {"moe.shared_experts.w1.weight", "mlp.shared_experts.gate_proj.weight"},
    {"moe.shared_experts.w2.weight", "mlp.shared_experts.down_proj.weight"},
    {"moe.shared_experts.w3.weight", "mlp.shared_experts.up_proj.weight"},
};

constexpr Pair kExperts[] = {
    {"moe.experts.w1", "gate_proj"},
    {"moe.experts.w2", "down_proj"},
    {"moe.experts.w3", "up_proj"},
};

template <size_t N>
std::string_view Find(const Pair (&table)[N], std::string_view ours) {
  for (const auto& [name, theirs] : table) {
    if (name == ours) return theirs;
  }
  return {};
}

std::string_view InLayer(const TrainConfig& config, std::string_view name) {
  // The norm of DeepSeek's latent queries, and that of each head's query in Qwen3.
  if (name == "attention.q_norm.weight") {
    return config.model == ModelFamily::kDeepSeekV3 ? "self_attn.q_a_layernorm.weight"
                                                    : "self_attn.q_norm.weight";
  }
  return Find(kInLayer, name);
}

int64_t PairedHeads(const TrainConfig& config, std::string_view name) {
  // DeepSeek's own weights are in pairs.
  const bool turns_pairs =
      config.model != ModelFamily::kDeepSeekV3 && config.rope.backend == RopeBackend::kComplex;
  if (!turns_pairs) return 0;
  if (name == "attention.qkv_linear.wq.weight") return config.n_heads;
  return name == "attention.qkv_linear.wk.weight" ? config.n_kv_heads : 0;
}

}  // namespace

HuggingFaceTensor ToHuggingFace(const TrainConfig& config, std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) {
    const bool is_tied = config.enable_weight_tying && name == "lm_head.weight";
    return {.names = {std::string(Find(kOutside, is_tied ? "tok_embeddings.weight" : name))}};
  }
  const size_t dot = name.find('.', kLayers.size());
  const std::string_view layer = name.substr(0, dot);
  const std::string_view member = name.substr(dot + 1);
  HuggingFaceTensor tensor;
  if (const std::string_view matrix = Find(kExperts, member); !matrix.empty()) {
    for (int64_t expert = 0; expert < config.moe->num_experts; ++expert)
      tensor.names.push_back(
          fmt::format("model.{}.mlp.experts.{}.{}.weight", layer, expert, matrix));
    return tensor;
  }
  const std::string_view theirs = InLayer(config, member);
  STRATA_CHECK(!theirs.empty(), "{}", name);
  tensor.names.push_back(fmt::format("model.{}.{}", layer, theirs));
  tensor.paired_heads = PairedHeads(config, member);
  tensor.is_optional = member == "moe.expert_bias";
  return tensor;
}

bool HasHuggingFaceName(const TrainConfig& config, std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return !Find(kOutside, name).empty();
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return false;
  const std::string_view member = name.substr(dot + 1);
  if (!Find(kExperts, member).empty()) return config.moe.has_value();
  return !InLayer(config, member).empty();
}

bool IsIgnoredHuggingFace(const TrainConfig& config, std::string_view name) {
  if (name.ends_with("rotary_emb.inv_freq")) return true;
  if (name == "lm_head.weight") return config.enable_weight_tying;
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return false;
  const std::string_view rest = name.substr(kLayers.size());
  int64_t layer = -1;
  std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  return config.model == ModelFamily::kDeepSeekV3 && layer == config.n_layers;
}

}  // namespace strata

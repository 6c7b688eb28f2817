#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// `program`: a step that another program traced; `library`: a model in a shared library.
enum class ModelFamily : uint8_t { kLlama3, kQwen3, kDeepSeekV3, kProgram, kLibrary };
/// `llama3`, `qwen3`, `deepseek_v3`, `program`, `library`.
std::string_view Name(ModelFamily model);

/// `torchtitan`: its own initialisers. `torchtitan_sharpened`: then norm weights get 0.1·N(0,1)
/// added and every other weight but `tok_embeddings` and `lm_head` is multiplied by 4, so that few
/// steps show every mistake.
enum class InitScheme : uint8_t { kTorchTitan, kTorchTitanSharpened };

/// How rotary embeddings lay out a head: `complex` rotates adjacent pairs (x[2j], x[2j+1]),
/// `cos_sin` the halves.
enum class RopeBackend : uint8_t { kComplex, kCosSin };
enum class RopeScaling : uint8_t { kNone, kLlama, kYarn };

/// Key `rope`. Fields of a scaling that is not chosen are kept and mean nothing.
struct RopeConfig {
  double theta = 500000.0;
  RopeBackend backend = RopeBackend::kComplex;
  RopeScaling scaling = RopeScaling::kLlama;
  int64_t max_seq_len = 0;  ///< rows of the table; seq_len where the configuration has none

  // scaling = "llama" (Llama 3.1)
  double scaling_factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;

  // scaling = "yarn"
  double rope_factor = 1.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  int64_t original_seq_len = 4096;
};

/// Key `mla`: multi-head latent attention (arXiv 2405.04434). Queries, and keys with values, come
/// from narrow latent vectors; RoPE rotates a part of each query and key.
struct MlaConfig {
  int64_t q_lora_rank = 0;  ///< width of the queries' latent; 0: queries come from x directly
  int64_t kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128;  ///< without RoPE
  int64_t qk_rope_head_dim = 64;   ///< rotated by RoPE; even
  int64_t v_head_dim = 128;
  double mscale = 1.0;  ///< with YaRN the scores grow by (0.1·mscale·ln(rope_factor) + 1)²
};

enum class ScoreFunction : uint8_t { kSoftmax, kSigmoid };

/// Key `moe`: mixture of experts (arXiv 2401.06066, 2412.19437).
struct MoeConfig {
  int64_t num_experts = 0;
  int64_t top_k = 0;  ///< experts per token
  int64_t moe_hidden_dim = 0;
  int64_t num_shared_experts = 0;  ///< together one feed-forward layer that sees every token
  ScoreFunction score_func = ScoreFunction::kSigmoid;
  bool route_norm = false;  ///< a token's scores are divided by their sum
  double route_scale = 1.0;
  int64_t num_expert_groups = 0;  ///< 0: a token may choose among all experts
  int64_t num_limited_groups = 0;
  bool score_before_experts = false;  ///< scores multiply what experts read, not what they give
  /// All experts in one product of sizes that do not depend on data; or one after the other, each
  /// on as many rows as it got.
  bool use_grouped_mm = true;
  std::optional<double> load_balance_coeff = 1e-3;  ///< null: no expert biases
  /// Key `debug.moe_force_load_balance`: experts are taken in turn, whatever the scores say.
  bool force_load_balance = false;
};

/// What a position may attend to: all before it, or those of its own document.
enum class AttentionMask : uint8_t { kCausal, kBlockCausal };

/// Which operator attends: ATen's, or flex attention with bodies of the graph.
enum class AttentionType : uint8_t { kSdpa, kFlex };

/// Key `flex`, with `attn_type = "flex"`: what a query attends to, and how scores change.
struct FlexConfig {
  int64_t window = 0;        ///< keys that a query sees, itself included; 0: all before it
  int64_t prefix = 0;        ///< first keys of a row that every query sees
  double soft_cap = 0.0;     ///< bound of the scores; 0: none
  bool alibi = false;        ///< scores fall with the distance, by head
  int64_t block_size = 128;  ///< queries and keys of a block of the block mask
  std::string mask_mod;      ///< file of a body that takes the place of window and prefix
  std::string score_mod;     ///< file of a body that takes the place of soft_cap and alibi
  /// The bodies themselves (passes/flex/flex_body.h).
  std::string mask_mod_text = {}, score_mod_text = {};
};

}  // namespace strata

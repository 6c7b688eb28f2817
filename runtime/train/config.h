#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/result.h"

namespace strata {

enum class ModelFamily : uint8_t { kLlama3, kQwen3, kDeepSeekV3 };

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
/// from narrow latent vectors; a part of each query and key is turned by position.
struct MlaConfig {
  int64_t q_lora_rank = 0;  ///< width of the queries' latent; 0: queries come from x directly
  int64_t kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128;  ///< not turned
  int64_t qk_rope_head_dim = 64;   ///< turned; even
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
  std::optional<double> load_balance_coeff = 1e-3;  ///< null: no expert biases
};

/// Key `optimizer`: AdamW with decoupled weight decay on every parameter, constant learning rate.
struct OptimizerConfig {
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::optional<double> max_grad_norm = 1.0;  ///< null: gradients are not clipped
};

/// What `strata train` is told: model, data, optimizer. Field names are those of torchtitan's
/// configuration. After loading every field holds the value that the run uses: derived ones
/// (head_dim, n_kv_heads, hidden_dim, rope.max_seq_len) are filled in, and defaults are those of
/// the family.
struct TrainConfig {
  ModelFamily model = ModelFamily::kLlama3;
  int64_t dim = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;  ///< default n_heads; divides n_heads
  int64_t head_dim = 0;    ///< of queries and keys; default dim / n_heads
  int64_t vocab_size = 0;
  /// Width of the dense feed-forward layers. Default of llama3: int(8·dim/3), times
  /// ffn_dim_multiplier, rounded up to a multiple of multiple_of. A given value wins over the two.
  int64_t hidden_dim = 0;
  int64_t multiple_of = 256;
  std::optional<double> ffn_dim_multiplier;
  double norm_eps = 1e-5;
  bool qk_norm = false;              ///< qwen3: norms of each head's query and key
  bool enable_weight_tying = false;  ///< one tensor, `lm_head.weight`, is also the token embedding
  RopeConfig rope;
  MlaConfig mla;                 ///< deepseek_v3
  std::optional<MoeConfig> moe;  ///< qwen3, deepseek_v3
  int64_t n_dense_layers = 0;    ///< the first ones, which have no experts though `moe` is given

  InitScheme init = InitScheme::kTorchTitan;
  OptimizerConfig optimizer;
  int64_t steps = 0;
  int64_t seq_len = 0;
  int64_t batch_size = 0;
  uint64_t seed = 0;  ///< of the initial parameters and of synthetic tokens

  bool HasExperts(int64_t layer) const { return moe && layer >= n_dense_layers; }
  /// Width of the part of a head that is turned by position.
  int64_t rope_dim() const {
    return model == ModelFamily::kDeepSeekV3 ? mla.qk_rope_head_dim : head_dim;
  }
};

enum class ConfigFormat : uint8_t { kToml, kJson };

/// Reads a configuration, TOML or JSON (name ends in `.json`, or the text starts with `{`), with
/// the same fields.
///
/// `overrides` are `key=value` with dotted keys (`optimizer.lr=0.01`, `rope.scaling=none`), applied
/// in order as if the file said so; values are JSON scalars, other text is a string, `null` unsets.
/// Keys that begin with `_` are ignored.
///
/// Errors, one line each with file and line: unreadable text, unknown keys (with the closest known
/// one), wrong types, missing keys, values that no run can have.
Result<TrainConfig> LoadTrainConfig(const std::string& path,
                                    std::span<const std::string> overrides = {});

/// The same for a text in memory; `file` is its name in errors.
Result<TrainConfig> ParseTrainConfig(std::string_view text, ConfigFormat format,
                                     std::string_view file,
                                     std::span<const std::string> overrides = {});

/// `llama3`, `qwen3`, `deepseek_v3`.
std::string_view Name(ModelFamily model);

}  // namespace strata

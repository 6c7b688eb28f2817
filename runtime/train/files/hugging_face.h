#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"

namespace strata {

/// How files with Hugging Face's names store a tensor of Strata's.
struct HuggingFaceTensor {
  /// Its name there; for the weights of experts the names of as many matrices, ours on top of each
  /// other.
  std::vector<std::string> names;
  /// Of wq and wk under `complex` rotary embeddings: heads whose rows lie there in halves (x[j],
  /// x[j + width/2]) and here in pairs (x[2j], x[2j+1]); 0: rows lie alike.
  int64_t paired_heads = 0;
  /// Not every model has it there; then it is zeros.
  bool is_optional = false;
};

/// Of our tensor `name`, `layers.0.attention.qkv_linear.wq.weight`, with `experts` matrices if it
/// has three sizes.
///
///   llama3       LlamaForCausalLM          qwen3  Qwen3ForCausalLM, Qwen3MoeForCausalLM
///   deepseek_v3  DeepseekV3ForCausalLM
///
/// REQUIRES: HasHuggingFaceName.
HuggingFaceTensor ToHuggingFace(const TrainConfig& config, std::string_view name);

/// False: a name that no model of `config`'s family has.
bool HasHuggingFaceName(const TrainConfig& config, std::string_view name);

/// True for what files with such names hold beside the tensors of `config`'s model: tables of
/// rotary embeddings, layers that predict further tokens, a head that is tied.
bool IsIgnoredHuggingFace(const TrainConfig& config, std::string_view name);

}  // namespace strata

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"

namespace strata {

/// `Qwen3MoeForCausalLM`: what computes the model there.
std::string_view ArchitectureOf(const TrainConfig& config);

/// The text of `config.json` for the model, its tensors of type `dtype`.
std::string HuggingFaceConfig(const TrainConfig& config, ExportType dtype);

/// What the architecture does not compute, or computes otherwise.
struct HuggingFaceLimits {
  std::vector<std::string> warnings;  ///< with the key of the configuration
  std::string_view missing_tensor;    ///< end of the name of tensors that it does not read; or ""
};
HuggingFaceLimits LimitsOfHuggingFace(const TrainConfig& config);

}  // namespace strata

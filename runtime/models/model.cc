#include "runtime/models/model.h"

#include <utility>

#include "runtime/models/deepseek_v3.h"
#include "runtime/models/library_model.h"
#include "runtime/models/llama3.h"
#include "runtime/models/qwen3.h"

namespace strata {
namespace {

/// Sharpening as `InitScheme::kTorchTitanSharpened` defines it.
void Sharpen(ModelSpecs& specs) {
  for (ParameterSpec& spec : specs.parameters) {
    const bool is_norm = spec.init.std == 0.0;
    if (is_norm) {
      spec.init.jitter = 0.1;
    } else if (spec.name != "tok_embeddings.weight" && spec.name != "lm_head.weight") {
      spec.init.scale = 4.0;
    }
  }
  for (ParameterSpec& spec : specs.buffers)
    spec.init.jitter = 0.05;
}

}  // namespace

std::unique_ptr<Model> MakeModel(const TrainConfig& config, Weights& weights,
                                 at::Tensor rope_table) {
  switch (config.model) {
    case ModelFamily::kLlama3:
      return MakeLlama3(config, weights, std::move(rope_table));
    case ModelFamily::kQwen3:
      return MakeQwen3(config, weights, std::move(rope_table));
    case ModelFamily::kDeepSeekV3:
      return MakeDeepSeekV3(config, weights, std::move(rope_table));
    case ModelFamily::kLibrary:
      return MakeLibraryModel(config, weights);
    case ModelFamily::kProgram:
      break;
  }
  return nullptr;
}

ModelSpecs SpecsOf(const TrainConfig& config) {
  ListingWeights weights;
  MakeModel(config, weights, {});
  if (config.init == InitScheme::kTorchTitanSharpened) Sharpen(weights.specs);
  return std::move(weights.specs);
}

}  // namespace strata

#pragma once
#include <memory>

#include "runtime/models/model.h"

namespace strata {

/// DeepSeek-V3 (arXiv 2412.19437) as torchtitan writes it. REQUIRES: config.model is kDeepSeekV3.
std::unique_ptr<Model> MakeDeepSeekV3(const TrainConfig& config, Weights& weights,
                                      at::Tensor rope_table);

}  // namespace strata

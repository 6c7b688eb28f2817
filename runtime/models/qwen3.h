#pragma once
#include <memory>

#include "runtime/models/model.h"

namespace strata {

/// Qwen3 (arXiv 2505.09388) as torchtitan writes it. REQUIRES: config.model is kQwen3.
std::unique_ptr<Model> MakeQwen3(const TrainConfig& config, Weights& weights,
                                 at::Tensor rope_table);

}  // namespace strata

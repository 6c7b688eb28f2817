#pragma once
#include <memory>

#include "runtime/models/model.h"

namespace strata {

/// Llama 3 (arXiv 2407.21783) as torchtitan writes it. REQUIRES: config.model is kLlama3.
std::unique_ptr<Model> MakeLlama3(const TrainConfig& config, Weights& weights,
                                  at::Tensor rope_table);

}  // namespace strata

#pragma once
#include <memory>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/models/model.h"

namespace strata {

/// Loads the library of `config.model_path` (include/strata/model.h), which stays loaded; of other
/// models nothing happens. Errors: no such library, or none that has a model of this interface.
Status LoadModelLibrary(const TrainConfig& config);

/// REQUIRES: config.model is kLibrary; loaded.
std::unique_ptr<Model> MakeLibraryModel(const TrainConfig& config, Weights& weights);

}  // namespace strata

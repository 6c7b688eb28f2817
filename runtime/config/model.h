#pragma once
#include <string_view>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

// The part of a configuration that describes a model: the keys of each family, their defaults,
// and which values fit together.

/// Reads `model` and, for that family, every key of the model but `rope`. Sets the family's
/// defaults of `rope` as well.
void ReadModel(ConfigReader& reader, TrainConfig& config);

/// Fills in what the text does not set, and checks that a model of these sizes exists and can be
/// held in memory. REQUIRES: the reader found no error; seq_len and batch_size are sizes.
Status CompleteModel(const ConfigReader& reader, std::string_view file, TrainConfig& config);

}  // namespace strata

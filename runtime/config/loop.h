#pragma once
#include "base/result.h"
#include "runtime/config/reader.h"

namespace strata {

// The half of a configuration that is about the training loop: optimizer, schedule, data,
// checkpoints, metrics.

/// Takes the fields of the loop.
void ReadLoop(ConfigReader& reader, TrainConfig& config);

/// Fills in what is derived, and checks what no loop can have. REQUIRES: `reader` has finished.
Status CompleteLoop(const ConfigReader& reader, TrainConfig& config);

}  // namespace strata

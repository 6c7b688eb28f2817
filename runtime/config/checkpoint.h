#pragma once
#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

/// Reads the table `checkpoint`.
void ReadCheckpoint(ConfigReader& reader, CheckpointConfig& checkpoint);
/// Errors: values that no checkpoint can have.
Status CheckCheckpoint(const ConfigReader& reader, const CheckpointConfig& checkpoint);

}  // namespace strata

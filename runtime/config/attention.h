#pragma once
#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

/// Keys `attn_type` and `flex`.
void ReadAttention(ConfigReader& reader, TrainConfig& config);

/// Reads the bodies that `flex` names. REQUIRES: sizes, mask and ranks are complete.
/// Errors: values that flex attention cannot have, bodies that it cannot run, with file and line.
Status CompleteAttention(const ConfigReader& reader, TrainConfig& config);

}  // namespace strata

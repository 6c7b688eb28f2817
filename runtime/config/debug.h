#pragma once
#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

/// Reads the tables `debug` and `profiler`: what is watched of a run and how exact it is.
void ReadDebug(ConfigReader& reader, TrainConfig& config);
/// Errors: schedules that cannot be.
Status CheckDebug(const ConfigReader& reader, const TrainConfig& config);

}  // namespace strata

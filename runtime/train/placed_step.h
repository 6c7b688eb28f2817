#pragma once
#include <memory>

#include "base/result.h"
#include "ir/module.h"
#include "runtime/config/config.h"

namespace strata {

/// The graphs of a training as `place` gets them: after the passes before it, with the batches of
/// all ranks. Errors: those of the tracer and of the passes.
Result<std::unique_ptr<Module>> TraceUnplaced(const TrainConfig& config);

}  // namespace strata

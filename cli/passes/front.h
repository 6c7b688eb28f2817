#pragma once
#include <string>

#include "base/result.h"
#include "passes/budget/memory_front.h"
#include "refs/ref.h"

namespace strata::cli {

/// The front of the graph that `ref` named. Nodes cost what the run's profile recorded for them, if
/// it has one, instead of `options.times`. Errors: as MemoryFrontOf.
Result<MemoryFront> FrontOf(const Snapshot& snapshot, const std::string& ref,
                            MemoryFrontOptions options);

}  // namespace strata::cli

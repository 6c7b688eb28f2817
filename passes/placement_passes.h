#pragma once
#include "passes/core/registry.h"

namespace strata {

/// Passes that distribute a training over ranks.
void RegisterPlacementPasses(PassRegistry& registry);

}  // namespace strata

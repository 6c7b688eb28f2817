#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterCleanupPasses(PassRegistry& registry);

}  // namespace strata

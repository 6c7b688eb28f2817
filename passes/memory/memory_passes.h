#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterMemoryPasses(PassRegistry& registry);

}  // namespace strata

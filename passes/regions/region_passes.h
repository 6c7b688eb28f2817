#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterRegionPasses(PassRegistry& registry);

}  // namespace strata

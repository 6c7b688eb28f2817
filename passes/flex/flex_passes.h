#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterFlexPasses(PassRegistry& registry);

}  // namespace strata

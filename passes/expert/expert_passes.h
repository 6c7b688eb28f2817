#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterExpertPasses(PassRegistry& registry);

}  // namespace strata

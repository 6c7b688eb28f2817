#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterCompilePasses(PassRegistry& registry);

}  // namespace strata

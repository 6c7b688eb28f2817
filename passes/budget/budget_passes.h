#pragma once
#include "passes/core/registry.h"

namespace strata {

void RegisterBudgetPasses(PassRegistry& registry);

}  // namespace strata

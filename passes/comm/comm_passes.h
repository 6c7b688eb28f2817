#pragma once
#include "passes/core/registry.h"

namespace strata {

/// Registers the passes on the communication between ranks.
void RegisterCommPasses(PassRegistry& registry);

}  // namespace strata

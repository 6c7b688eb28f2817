#pragma once
#include "passes/core/registry.h"

namespace strata {

/// Every pass of the library, a line per family: what pipeline text can name.
PassRegistry AllPasses();

}  // namespace strata

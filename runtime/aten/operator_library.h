#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace strata {

/// Loads shared libraries whose operators graphs call: `TORCH_LIBRARY(…)` in C++, built against the
/// LibTorch of this program. They stay loaded.
///
/// Errors: a file that cannot be loaded, or that registers what is registered already.
Status LoadOperators(std::span<const std::string> paths);

}  // namespace strata

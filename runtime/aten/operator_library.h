#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// Opens a shared library that was built against the LibTorch of this program; it stays loaded.
/// Returns what dlsym takes. `what` it is, "model", stands in the message.
///
/// Errors: a file that cannot be loaded, or that registers what is registered already.
Result<void*> OpenTorchLibrary(const std::string& path, std::string_view what);

/// Loads libraries whose operators graphs call: `TORCH_LIBRARY(…)` in C++. Errors: as above.
Status LoadOperators(std::span<const std::string> paths);

}  // namespace strata

#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// Where compiled kernels are kept, made if it is not there. "": $XDG_CACHE_HOME/strata/kernels, or
/// ~/.cache/strata/kernels.
Result<std::filesystem::path> KernelCacheFolder(const std::string& wanted);

/// The name of what was compiled from `content`: 32 hexadecimal digits.
std::string ContentKey(std::string_view content);

}  // namespace strata

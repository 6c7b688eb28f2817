#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// The content of a file that may be compressed with gzip or zstd, which its first bytes show;
/// other bytes are returned unchanged. Consecutive compressed streams are one content. Errors, with
/// `path` in them: damaged or cut data, more than 64 GiB.
Result<std::string> Decompress(std::string bytes, std::string_view path);

}  // namespace strata

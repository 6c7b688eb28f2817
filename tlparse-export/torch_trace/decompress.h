#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// The content of a file that may be compressed with gzip or zstd, told by its first bytes; other
/// bytes come back as they are. Several compressed streams one after the other are one content.
/// Errors, with `path` in them: damaged or cut data, more than 64 GiB.
Result<std::string> Decompress(std::string bytes, std::string_view path);

}  // namespace strata

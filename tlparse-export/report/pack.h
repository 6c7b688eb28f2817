#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// `bytes` compressed with gzip, in base64: as data stands in a page.
Result<std::string> Pack(std::string_view bytes);

}  // namespace strata

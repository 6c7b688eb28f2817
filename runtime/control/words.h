#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata {

/// The parts of a command between blanks.
std::vector<std::string_view> SplitWords(std::string_view text);

/// A whole number from 1. Errors: anything else.
Result<int64_t> ParseCount(std::string_view word);
/// A finite number: `1e-4`. Errors: anything else.
Result<double> ParseNumber(std::string_view word);

}  // namespace strata

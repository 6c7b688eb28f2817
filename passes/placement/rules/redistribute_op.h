#pragma once
#include <string_view>

namespace strata {

/// A node of a placed graph whose result has other placements than its operand:
/// `strata.redistribute(x, 'S(0)R')`.
inline constexpr std::string_view kRedistributeOp = "strata.redistribute.default";

}  // namespace strata

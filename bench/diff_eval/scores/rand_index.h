#pragma once
#include <cstdint>
#include <span>

namespace strata::bench {

/// The adjusted Rand index of two groupings of the same things: 1 for equal ones, about 0 for
/// independent ones. Source: Hubert and Arabie 1985.
double AdjustedRandIndex(std::span<const int32_t> a, std::span<const int32_t> b);

}  // namespace strata::bench

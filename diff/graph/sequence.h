#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace strata {

/// Indices (i, j), ascending, of a longest common subsequence. What both begin and end with is
/// matched at once; between them O(n·m) time and memory, or, beyond a few million cells, in order
/// of unique common elements only.
std::vector<std::pair<int32_t, int32_t>> CommonSubsequence(std::span<const uint64_t> a,
                                                           std::span<const uint64_t> b);

}  // namespace strata

#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace strata {

/// How values depend on the rank.
struct RankRule {
  std::string text;           ///< `32·rank`, `8·(rank / 4)`, `((rank + 1) % 8)`
  std::vector<bool> follows;  ///< by rank
  int32_t exceptions = 0;     ///< ranks that do not follow it: a third at most
  /// Only two values are behind it, which are always a line: this is how far they are apart. A rule
  /// to be believed when that is a size (see SizesOf); none: there are more values.
  std::optional<int64_t> step = {};
};

/// The rule with fewest exceptions that a program of ranks in a mesh would compute; none when there
/// is none. `ranks` ascend; `values` are theirs.
std::optional<RankRule> FindRankRule(std::span<const int32_t> ranks,
                                     std::span<const int64_t> values);

/// The same, without a rule that two values suggest by chance: their distance is not among `sizes`
/// (see SizesOf), and sizes are known.
std::optional<RankRule> FindRankRule(std::span<const int32_t> ranks,
                                     std::span<const int64_t> values,
                                     const std::set<int64_t>& sizes);

}  // namespace strata

#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace strata {

/// Which stages a rank of axis `pp` has, where it has several.
enum class StageStyle : uint8_t {
  kLoop,  ///< rank r of P has r, r + P, r + 2P, …
  kV,     ///< rank r has r and 2P - 1 - r
};
std::string_view ToString(StageStyle style);  ///< "loop", "v"

/// The rank of each stage. REQUIRES: `num_ranks` divides `num_stages`; kV: 2 stages per rank.
std::vector<int64_t> RanksOfStages(int64_t num_stages, int64_t num_ranks, StageStyle style);

}  // namespace strata

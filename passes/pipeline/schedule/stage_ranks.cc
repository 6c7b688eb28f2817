#include "passes/pipeline/schedule/stage_ranks.h"

#include "base/result.h"

namespace strata {

std::string_view ToString(StageStyle style) {
  return style == StageStyle::kLoop ? "loop" : "v";
}

std::vector<int64_t> RanksOfStages(int64_t num_stages, int64_t num_ranks, StageStyle style) {
  STRATA_CHECK(num_stages % num_ranks == 0);
  STRATA_CHECK(style == StageStyle::kLoop || num_stages == 2 * num_ranks);
  std::vector<int64_t> ranks;
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    const bool turned = style == StageStyle::kV && stage >= num_ranks;
    ranks.push_back(turned ? num_stages - 1 - stage : stage % num_ranks);
  }
  return ranks;
}

}  // namespace strata

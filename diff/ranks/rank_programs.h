#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "ir/fingerprint.h"

namespace strata {

/// A graph of one rank.
struct RankGraph {
  int32_t rank = 0;
  Fingerprint fingerprint;
  std::function<Result<LoadedGraph>()> load;
};

/// Which ranks run one program (see RankForm and RankRule): for each graph the index of the first
/// one with its program. Each fingerprint is loaded once. REQUIRES: ranks differ and ascend.
/// Errors: a graph that cannot be loaded.
Result<std::vector<size_t>> FindRankPrograms(const std::vector<RankGraph>& graphs);

}  // namespace strata

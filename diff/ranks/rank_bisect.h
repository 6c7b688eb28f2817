#pragma once
#include <optional>

#include "base/result.h"
#include "diff/history/bisect.h"
#include "diff/history/history.h"

namespace strata {

/// FindDivergence for runs of any ranks: what follows from a rank does not count between runs of
/// different ranks (see RankForm and RankRule). Errors: a graph that cannot be loaded.
Result<std::optional<Divergence>> FindRankDivergence(const History& a, const History& b);

}  // namespace strata

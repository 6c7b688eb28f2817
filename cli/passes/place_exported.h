#pragma once
#include "base/result.h"
#include "cli/passes/place_search.h"

namespace strata::cli {

/// Prints what placements cost that AutoParallel exported, by their costs and by ours. False: the
/// source is something else.
Result<bool> PrintExported(const PlaceFlags& flags);

}  // namespace strata::cli

#pragma once
#include <cstddef>
#include <string>

#include "scene/cost_diff.h"

namespace strata::cli {

/// The first `shown` rows of each list.
std::string CostText(const CostDiff& costs, size_t shown);
/// `strata.cost/1` (docs/json.md).
std::string CostJson(const CostDiff& costs, const std::string& before_ref,
                     const std::string& after_ref);

}  // namespace strata::cli

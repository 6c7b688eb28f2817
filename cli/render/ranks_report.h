#pragma once
#include <cstddef>
#include <string>

#include "diff/ranks/ranks.h"

namespace strata::cli {

/// Classes of ranks, where they differ first, collectives that do not match, constants of ranks.
std::string RanksReportText(const RanksReport& report);

/// The same as `strata.ranks/1` (docs/json.md).
std::string RanksReportJson(const RanksReport& report);

}  // namespace strata::cli

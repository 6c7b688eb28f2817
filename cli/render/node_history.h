#pragma once
#include <string>
#include <vector>

#include "diff/history/blame.h"

namespace strata::cli {

/// The history of a node, a line per event, then those of its relatives.
std::string BlameText(const Blame& blame, const std::vector<Blame>& relatives);

/// The same as `strata.blame/1` (docs/json.md).
std::string BlameJson(const Blame& blame, const std::vector<Blame>& relatives);

}  // namespace strata::cli

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diff/model/graph_diff.h"

namespace strata {

/// A part of the headline of a difference: `3 changed`.
struct SummaryPart {
  int32_t count = 0;      ///< 0: `what` stands alone
  std::string_view what;  ///< "changed", "no differences"

  std::string ToString() const;
};

/// The headline: differences or "no differences", then renamed and equal nodes. Counts of 0 are
/// left out.
std::vector<SummaryPart> SummaryParts(const DiffSummary& summary);

}  // namespace strata

#pragma once
#include <string>
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// The hunks that say only that numbers became symbols, or symbols numbers.
struct SymbolicSizes {
  std::string title;  ///< "sizes became symbolic (2 → s77, 12 → s27)"
  std::vector<HunkId> hunks;
};

/// Finds them. Inputs show which symbol is which number: `f32[2, 12]` is `f32[s77, 12]` now. A hunk
/// counts when nothing else is left of it under these numbers: sizes, strides and arguments are
/// equal, and what was inserted (deleted) are symbolic integers and what reads them from a tensor.
///
/// No hunks when inputs contradict each other.
SymbolicSizes FindSymbolicSizes(const GraphDiff& diff, const Matching& matching);

}  // namespace strata

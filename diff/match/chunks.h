#pragma once
#include "diff/match/matching.h"

namespace strata {

/// Forbids nodes that are copies of a few nodes, one per part of a value that only one side cuts
/// into parts: `f(x)` has become `cat(f(x0), f(x1))`, and is neither of the two.
void ForbidChunks(Matching& matching, const ScopePair& scope);

}  // namespace strata

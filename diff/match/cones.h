#pragma once
#include "diff/match/matching.h"

namespace strata {

/// Nodes whose whole computation (everything above them) is the same; where that leaves a choice,
/// those with the same use of the result (everything below them) too.
void MatchCones(Matching& matching, const ScopePair& scope);

/// Computations that are left and compute the same values, as many on both sides: in order,
/// whoever reads them.
void MatchEqualValues(Matching& matching, const ScopePair& scope);

}  // namespace strata

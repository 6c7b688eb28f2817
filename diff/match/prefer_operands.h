#pragma once
#include "diff/match/matching.h"

namespace strata {

/// Operands count before users: two nodes of one label give each other their partners where both
/// have more operands in common with the other one's. Returns true if any did.
bool PreferOperands(Matching& matching, const ScopePair& scope);

}  // namespace strata

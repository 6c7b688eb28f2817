#pragma once
#include "diff/match/matching.h"

namespace strata {

/// Takes back pairs of inputs that were made for their place and type alone, where the nodes around
/// them show that they are not the same. Returns true if there were any.
bool ReviseInputs(Matching& matching, const ScopePair& scope);

}  // namespace strata

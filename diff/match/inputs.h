#pragma once
#include "diff/match/matching.h"

namespace strata {

/// Inputs and constants by place and type; where the lists differ, by what uses them.
void MatchInputs(Matching& matching, const ScopePair& scope);

/// Takes back pairs of inputs that were made for their place and type alone, where the nodes around
/// them show that they are not the same. Returns true if there were any.
bool ReviseInputs(Matching& matching, const ScopePair& scope);

/// Inputs that are left, by place and type.
void MatchInputsLeft(Matching& matching, const ScopePair& scope);

}  // namespace strata

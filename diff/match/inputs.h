#pragma once
#include "diff/match/matching.h"

namespace strata {

/// The confidence of pairs of inputs that were made for their place and type alone.
inline constexpr double kInputByPlace = 0.94;

/// Inputs and constants by place and type; where the lists differ, by what uses them.
void MatchInputs(Matching& matching, const ScopePair& scope);

/// Inputs that are left, by place and type.
void MatchInputsLeft(Matching& matching, const ScopePair& scope);

}  // namespace strata

#pragma once
#include <cstdint>

#include "diff/match/matching.h"

namespace strata {

/// How much of a node itself a hash of its neighbourhood takes in; see Labels.
enum class LabelLevel : uint8_t { kType, kLiterals, kOp, kValue };

/// Nodes whose neighbourhood is the same, and unique, up to a distance: the largest one first.
void MatchRadius(Matching& matching, const ScopePair& scope, LabelLevel level, int min_radius,
                 int max_radius);

}  // namespace strata

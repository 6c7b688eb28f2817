#pragma once
#include "diff/diff.h"
#include "diff/match/matching.h"

namespace strata {

/// Matches two listings: pins first; then by stable ids alone if `options` say so, else by
/// structure, programs before their bodies.
Status MatchListings(const Listing& before, const Listing& after, const DiffOptions& options,
                     Matching& matching);

}  // namespace strata

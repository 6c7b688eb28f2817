#pragma once
#include "diff/match/matching.h"
#include "diff/model/diff_options.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Matches two listings: pins first; then by stable ids alone if `options` say so, else by
/// structure, programs before their bodies.
Status MatchListings(const Listing& before, const Listing& after, const DiffOptions& options,
                     Matching& matching);

}  // namespace strata

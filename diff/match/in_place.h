#pragma once
#include <cstddef>

#include "diff/graph/listing.h"
#include "diff/match/matching.h"

namespace strata {

/// Nodes whose operator was replaced between what they read and who reads them, not all of which is
/// known. Looks next to pairs from the `since`th of `matching.made()` on. Returns true if there
/// were any.
bool MatchInPlace(const Listing& before, const Listing& after, Matching& matching,
                  const ScopePair& scope, size_t since);

}  // namespace strata

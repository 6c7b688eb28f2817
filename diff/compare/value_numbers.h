#pragma once
#include <cstdint>

#include "diff/match/matching.h"

namespace strata {

/// What each node computes, as a hash: equal for equal operators over equal values.
IdVector<EntityId, uint64_t> ValueNumbers(const Labels& labels);

/// The same, but unmatched pieces of one value count as equal, so that copies of a body, one per
/// piece, do. A piece that a copy takes of its own value does not: the original takes it, too.
/// Data-dependent sizes count as equal: each copy has its own.
IdVector<EntityId, uint64_t> ValueNumbersOfCopies(const Listing& listing, const Matching& matching,
                                                  Side side);

}  // namespace strata

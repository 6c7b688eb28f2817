#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "diff/match/matching.h"

namespace strata {

/// What each node computes, as a hash: equal for equal operators over equal values.
IdVector<EntityId, uint64_t> ValueNumbers(const Labels& labels);

/// The same, but unmatched pieces of one value count as equal, so that copies of a body, one per
/// piece, do. A piece that a copy takes of its own value does not: the original takes it, too.
/// Data-dependent sizes count as equal: each copy has its own.
IdVector<EntityId, uint64_t> ValueNumbersOfCopies(const Listing& listing, const Matching& matching,
                                                  Side side);

/// Per matched node the unmatched ones with its number: of several matched ones the first.
/// `numbers`: of the side, one of the above.
std::map<EntityId, std::vector<EntityId>> EqualsOfMatched(
    const Matching& matching, Side side, const IdVector<EntityId, uint64_t>& numbers);

}  // namespace strata

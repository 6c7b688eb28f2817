#pragma once
#include <vector>

#include "diff/match/matching.h"

namespace strata {

/// An unmatched node that computes what a matched one of its side does.
struct Clone {
  EntityId copy, original;
};

/// Those of the after side, by copy. Of several equal originals (a value that is computed twice), a
/// copy has the one that its users read before; where no user says, the one that reads what its
/// operands are copies of; or the first.
std::vector<Clone> FindClones(const Listing& after, const Matching& matching);

}  // namespace strata

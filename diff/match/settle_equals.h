#pragma once
#include <vector>

#include "diff/match/equal_nodes.h"
#include "diff/match/matching.h"

namespace strata {

/// Of several equal nodes of which the other side has one, the one that stands where it stands is
/// its partner, unless users decide otherwise. `equals`: by side. Returns true if another one is it
/// now.
bool SettleEquals(Matching& matching, const ScopePair& scope,
                  const std::vector<EqualNodes>& equals);

}  // namespace strata

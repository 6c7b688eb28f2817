#pragma once
#include <cstdint>

#include "diff/match/matching.h"

namespace strata {

/// Lets nodes exchange their partners, chains of them too, where more edges agree then. Looks where
/// something changed after `since`, a time of `matching.clock()`; 0: everywhere. Returns true if
/// any did.
bool Exchange(Matching& matching, const ScopePair& scope, uint32_t since = 0);

}  // namespace strata

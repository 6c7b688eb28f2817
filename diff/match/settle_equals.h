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

/// Of several equal nodes on both sides, more on one of them, those that the same users read
/// are partners: which ones are new follows. Returns true if any partner changed.
///
///   before  p = f(x)  a = g(u, p)                              q = f(x)  b = g(v, q)
///   after   p'= f(x)  a'= g(u, p')    q'= f(x)  b'= g(v, q')   r'= f(x)  c'= g(w, r')
///
/// The partners of p and q are p' and q', whatever is below them.
bool ShiftEquals(Matching& matching, const std::vector<EqualNodes>& equals);

}  // namespace strata

#pragma once
#include <array>
#include <cstddef>

#include "diff/match/matching.h"
#include "diff/match/regions.h"

namespace strata {

/// What is left between matched nodes, in order.
void MatchGaps(Matching& matching, const ScopePair& scope);

/// What is left in regions that have the same around them, wherever they stand: in order.
/// REQUIRES: no pair is removed during its lifetime.
class RegionMatcher {
 public:
  RegionMatcher(Matching& matching, const ScopePair& scope);
  /// Looks where something changed since the last time.
  void Run();

 private:
  Matching& matching_;
  size_t size_;  // of the scope
  std::array<Regions, 2> regions_;
};

}  // namespace strata

#pragma once
#include <array>
#include <cstddef>

#include "diff/match/matching.h"
#include "diff/match/regions.h"

namespace strata {

/// What is left between matched nodes, in order. Large gaps `by_label` alone, unless more edges
/// contradict that than agree: then it returns false, and none of these pairs is left.
bool MatchGaps(Matching& matching, const ScopePair& scope, bool by_label);

/// What is left in regions that have the same around them, wherever they stand: in order.
/// REQUIRES: no pair that it saw is removed during its lifetime.
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

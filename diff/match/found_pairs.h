#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "diff/match/matching.h"

namespace strata {

/// Pairs that a stage found in the order of their hashes, to be matched in the order of the graph.
class FoundPairs {
 public:
  void Add(EntityId before, EntityId after) { pairs_.emplace_back(before, after); }
  bool empty() const { return pairs_.empty(); }
  /// Drops pairs that contradict the order of nearly all others, these and earlier ones.
  void DropDisordered(const Matching& matching, const ScopePair& scope);
  /// Whether the pairs, taken in the order of one side, stand on the other in no order at all: as
  /// chance would have it. Few pairs never do.
  bool AreShuffled() const;
  /// Matches the pairs whose nodes are of one kind.
  void MatchAll(Matching& matching, Via via, double confidence);

 private:
  std::vector<std::pair<EntityId, EntityId>> pairs_;
};

}  // namespace strata

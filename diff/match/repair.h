#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "diff/match/matching.h"

namespace strata {

/// Nodes that stood nowhere where a node of their operator stands on the other side, and when that
/// was: until something changes around them, repair need not ask again.
class HopelessNodes {
 public:
  explicit HopelessNodes(const Matching& matching) : matching_(matching) {}
  void Add(Side side, EntityId i, uint32_t now) {
    if (since_[side].empty()) since_[side].resize(matching_.labels(side).size());
    since_[side][i] = now;
  }
  /// 0: it is not one.
  uint32_t since(Side side, EntityId i) const { return since_[side].empty() ? 0 : since_[side][i]; }

 private:
  const Matching& matching_;
  std::array<IdVector<EntityId, uint32_t>, 2> since_;  // empty: there are none
};

/// Gives unmatched nodes a partner with which most edges agree, also one that is another node's
/// where more edges agree with the new one. Looks where something changed after `since`, a time of
/// `matching.clock()`; 0: everywhere. Returns true if any pair is new.
bool Repair(Matching& matching, const ScopePair& scope, HopelessNodes& hopeless,
            uint32_t since = 0);

}  // namespace strata

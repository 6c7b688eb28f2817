#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "diff/match/matching.h"

namespace strata {

/// Nodes whose neighbourhood is the same, and unique, up to a distance: the largest one first.
class RadiusMatcher {
 public:
  /// REQUIRES: `scope` outlives it.
  RadiusMatcher(Matching& matching, const ScopePair& scope) : matching_(matching), scope_(scope) {}

  /// Does nothing where it would see what it saw last: few pairs are new, and labels of this level
  /// distinguish the same nodes.
  ///
  /// REQUIRES: of the levels run before, the last one had no smaller range of radiuses.
  /// `level`: how much of a node itself a hash of its neighbourhood takes in.
  void Run(LabelKind level, int min_radius, int max_radius);

 private:
  Matching& matching_;
  const ScopePair& scope_;
  std::optional<LabelKind> last_;
  size_t made_ = 0;  // pairs before the last level
};

}  // namespace strata

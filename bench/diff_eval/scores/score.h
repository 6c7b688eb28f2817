#pragma once
#include <cstdint>
#include <vector>

#include "diff/model/graph_diff.h"

namespace strata::bench {

/// A matching as a method under test gives it: per before entity the after entity; -1: none.
using Partners = std::vector<int32_t>;

inline Partners PartnersOf(const GraphDiff& diff) {
  Partners partners(static_cast<size_t>(diff.before.size()), -1);
  for (const Pair& pair : diff.pairs)
    partners[static_cast<size_t>(pair.before.index)] = pair.after.index;
  return partners;
}

/// Claims against truth.
struct Score {
  int64_t right = 0, wrong = 0, missed = 0;

  void Add(const Score& other) {
    right += other.right;
    wrong += other.wrong;
    missed += other.missed;
  }
  /// 1 where there is nothing to find, or nothing was claimed.
  double precision() const { return Share(right, wrong); }
  double recall() const { return Share(right, missed); }
  double f1() const {
    const double sum = precision() + recall();
    return sum == 0 ? 0 : 2 * precision() * recall() / sum;
  }

 private:
  static double Share(int64_t good, int64_t bad) {
    return good + bad == 0 ? 1 : static_cast<double>(good) / static_cast<double>(good + bad);
  }
};

}  // namespace strata::bench

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace strata {

/// Disjoint sets of 0 … n-1 that grow together.
class UnionFind {
 public:
  explicit UnionFind(size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }

  /// The smallest member of the set of `i`.
  size_t Find(size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void Join(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = static_cast<uint32_t>(std::min(a, b));
  }

 private:
  std::vector<uint32_t> parent_;  // nodes are counted in 32 bits
};

}  // namespace strata

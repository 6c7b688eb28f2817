#pragma once
#include <cstdint>
#include <vector>

#include "diff/match/matching.h"

namespace strata {

/// The nodes of one side of a scope that compute the same value: equal operators over equal values,
/// random numbers excepted. What a common subexpression elimination would merge.
class EqualNodes {
 public:
  EqualNodes(const Labels& labels, const ScopePair& scope, Side side);

  using Group = std::vector<int32_t>;
  /// Those with two members and more, each in order.
  const std::vector<Group>& groups() const { return groups_; }
  /// The group of a node; null: it is like no other, or of another scope.
  const Group* GroupOf(int32_t i) const {
    const auto index = static_cast<size_t>(i - begin_);
    if (i < begin_ || index >= group_of_.size() || group_of_[index] < 0) return nullptr;
    return &groups_[static_cast<size_t>(group_of_[index])];
  }

 private:
  int32_t begin_;
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_;  // by entity; empty if there are no groups
};

}  // namespace strata

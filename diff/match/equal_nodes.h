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

  using Group = std::vector<EntityId>;
  /// Those with two members and more, each in order.
  const std::vector<Group>& groups() const { return groups_; }
  /// The group of a node; null: it is like no other, or of another scope.
  const Group* GroupOf(EntityId i) const {
    if (groups_.empty() || !ids_.Contains(i)) return nullptr;
    const auto index = static_cast<size_t>(i.index - ids_.begin_id().index);
    if (group_of_[index] < 0) return nullptr;
    return &groups_[static_cast<size_t>(group_of_[index])];
  }

 private:
  IdRange<EntityId> ids_;
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_;  // by place in the scope; empty if there are no groups
};

}  // namespace strata

#include "diff/match/equal_nodes.h"

#include <algorithm>

#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"

namespace strata {

EqualNodes::EqualNodes(const Labels& labels, const ScopePair& scope, Side side)
    : begin_(scope.begin[side]) {
  const int32_t end = scope.end[side];
  const auto at = [&](int32_t i) { return static_cast<size_t>(i - begin_); };
  std::vector<uint64_t> numbers(at(end));
  HashFilter once(at(end)), again(at(end));
  for (int32_t i = begin_; i < end; ++i) {
    const auto index = static_cast<size_t>(i);
    uint64_t number = labels.type[index];
    if (!labels.pure[index]) number = Mix(number, index);
    for (const Labels::Edge& operand : labels.operands(i)) {
      const bool inside = operand.entity >= begin_ && operand.entity < end;
      number = Mix(number, inside ? numbers[at(operand.entity)] : 0);
    }
    numbers[at(i)] = number;
    if (labels.pure[index]) (once.MayHave(number) ? again : once).Add(number);
  }
  // Most nodes are like no other.
  std::vector<Keyed> keyed;
  for (int32_t i = begin_; i < end; ++i) {
    const uint64_t number = numbers[at(i)];
    if (labels.pure[static_cast<size_t>(i)] && again.MayHave(number)) keyed.push_back({number, i});
  }
  SortKeys(keyed);
  for (size_t i = 0, j = 0; i < keyed.size(); i = j) {
    for (j = i + 1; j < keyed.size() && keyed[j].key == keyed[i].key;)
      ++j;
    if (j - i < 2) continue;
    if (groups_.empty()) group_of_.assign(numbers.size(), -1);
    Group group;
    for (size_t k = i; k < j; ++k) {
      group.push_back(keyed[k].entity);
      group_of_[at(keyed[k].entity)] = static_cast<int32_t>(groups_.size());
    }
    groups_.push_back(std::move(group));
  }
}

}  // namespace strata

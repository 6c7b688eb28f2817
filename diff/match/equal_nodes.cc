#include "diff/match/equal_nodes.h"

#include <algorithm>

#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/large_arrays.h"
#include "diff/match/fetch_ahead.h"

namespace strata {

EqualNodes::EqualNodes(const Labels& labels, const ScopePair& scope, Side side)
    : ids_(scope.ids(side)) {
  const auto at = [&](EntityId i) { return scope.PlaceOf(side, i); };
  auto numbers = MakeLarge<std::vector<uint64_t>>(ids_.size());
  RepeatFilter repeats(ids_.size());
  for (EntityId i : ids_) {
    if (const EntityId later{i.index + kAhead}; ids_.Contains(later)) {
      FetchAhead(labels.operands(later), [&](EntityId operand) {
        return numbers.data() + (operand.index - ids_.begin_id().index);
      });
    }
    uint64_t number = labels.type[i];
    if (!labels.pure[i]) number = Mix(number, static_cast<uint64_t>(i.index));
    for (const Labels::Edge& operand : labels.operands(i)) {
      const bool inside = ids_.Contains(operand.entity);
      number = Mix(number, inside ? numbers[at(operand.entity)] : 0);
    }
    numbers[at(i)] = number;
    if (labels.pure[i]) repeats.Add(number);
  }
  // Most nodes are like no other.
  std::vector<Keyed> keyed;
  for (EntityId i : ids_) {
    const uint64_t number = numbers[at(i)];
    if (labels.pure[i] && repeats.MayRepeat(number)) keyed.push_back({number, i});
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

#include "diff/match/input_stretches.h"

#include <cstdint>

#include "diff/graph/keyed.h"
#include "diff/graph/order.h"

namespace strata {
namespace {

/// Inputs in a stretch: with half as many, a list of thousands has most stretches several times.
constexpr size_t kLength = 8;

/// What an input is, and what its users are; of a hub without its users.
uint64_t KeyOfInput(const Matching& matching, Side side, EntityId i) {
  const Labels& labels = matching.labels(side);
  const auto users = labels.users(i);
  uint64_t sum = 0;
  if (users.size() <= Matching::kMaxEdges) {
    for (const Labels::Edge& user : users)
      sum += Mix(labels.type[user.entity], static_cast<uint64_t>(matching.SlotOfUser(side, user)));
  }
  return Mix(labels.type[i], sum);
}

/// A place in a list.
using ListPlace = Id<struct ListPlaceTag>;

/// Stretches by their first places.
std::vector<KeyedBy<ListPlace>> Stretches(const Matching& matching, Side side,
                                          std::span<const EntityId> inputs) {
  std::vector<uint64_t> keys;
  keys.reserve(inputs.size());
  for (const EntityId i : inputs)
    keys.push_back(KeyOfInput(matching, side, i));
  std::vector<KeyedBy<ListPlace>> stretches;
  stretches.reserve(keys.size());
  for (size_t begin = 0; begin + kLength <= keys.size(); ++begin) {
    uint64_t hash = 0;
    for (size_t k = 0; k < kLength; ++k)
      hash = Mix(hash, keys[begin + k]);
    stretches.push_back({hash, ListPlace{static_cast<int32_t>(begin)}});
  }
  return stretches;
}

}  // namespace

std::vector<std::pair<EntityId, EntityId>> CommonStretches(const Matching& matching,
                                                           std::span<const EntityId> before,
                                                           std::span<const EntityId> after) {
  std::vector<KeyedBy<ListPlace>> stretches_before = Stretches(matching, kBefore, before);
  std::vector<KeyedBy<ListPlace>> stretches_after = Stretches(matching, kAfter, after);
  std::vector<OrderPoint> begins;
  ForEachCommonKey(stretches_before, stretches_after, [&](auto befores, auto afters) {
    if (befores.size() == 1 && afters.size() == 1)
      begins.push_back({befores[0].index, afters[0].index});
  });
  std::ranges::sort(begins, {}, &OrderPoint::before);
  const std::vector<bool> in_order = LargestOrderedSet(begins);
  std::vector<std::pair<EntityId, EntityId>> pairs;
  size_t next_before = 0, next_after = 0;  // stretches overlap
  for (size_t i = 0; i < begins.size(); ++i) {
    if (!in_order[i]) continue;
    for (size_t k = 0; k < kLength; ++k) {
      const size_t a = static_cast<size_t>(begins[i].before) + k;
      const size_t b = static_cast<size_t>(begins[i].after) + k;
      if (a < next_before || b < next_after) continue;
      pairs.emplace_back(before[a], after[b]);
      next_before = a + 1;
      next_after = b + 1;
    }
  }
  return pairs;
}

}  // namespace strata

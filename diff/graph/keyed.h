#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// An entity and a feature of it; those of both sides with equal keys are candidates for each
/// other.
struct Keyed {
  uint64_t key;
  int32_t entity;
  friend auto operator<=>(const Keyed&, const Keyed&) = default;
};

/// Calls `fn(befores, afters)` with the entities of each key that both sides have, in order of the
/// keys. Entities of one key keep their order.
template <class Fn>
void ForEachCommonKey(std::vector<Keyed>& before, std::vector<Keyed>& after, Fn&& fn) {
  for (std::vector<Keyed>* side : {&before, &after}) {
    if (!std::ranges::is_sorted(*side)) std::ranges::sort(*side);
  }
  std::vector<int32_t> befores, afters;
  for (size_t i = 0, j = 0; i < before.size() && j < after.size();) {
    if (before[i].key != after[j].key) {
      (before[i].key < after[j].key ? i : j) += 1;
      continue;
    }
    const uint64_t key = before[i].key;
    befores.clear();
    afters.clear();
    for (; i < before.size() && before[i].key == key; ++i)
      befores.push_back(before[i].entity);
    for (; j < after.size() && after[j].key == key; ++j)
      afters.push_back(after[j].entity);
    fn(std::span<const int32_t>(befores), std::span<const int32_t>(afters));
  }
}

}  // namespace strata

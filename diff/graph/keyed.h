#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "diff/graph/listing.h"

namespace strata {

/// An id and a feature of it. Entities of both sides with equal keys are candidates for each other.
template <class IdType>
struct KeyedBy {
  uint64_t key;
  IdType entity;
  friend auto operator<=>(const KeyedBy&, const KeyedBy&) = default;
};
using Keyed = KeyedBy<EntityId>;

/// A set of hashes that may say yes to one that it does not have, once in sixteen times: it is
/// small enough to be asked before anything expensive is done.
class HashFilter {
 public:
  explicit HashFilter(size_t size)
      : bits_(std::bit_ceil(size / 4 + 1)), shift_(64 - std::countr_zero(64 * bits_.size())) {}

  void Add(uint64_t hash) { bits_[Word(hash)] |= Bit(hash); }
  bool MayHave(uint64_t hash) const { return (bits_[Word(hash)] & Bit(hash)) != 0; }

 private:
  // Not all keys are hashes in all of their bits.
  size_t Place(uint64_t hash) const { return (hash * 0x9E3779B97F4A7C15ull) >> shift_; }
  size_t Word(uint64_t hash) const { return Place(hash) / 64; }
  uint64_t Bit(uint64_t hash) const { return uint64_t{1} << (Place(hash) % 64); }

  std::vector<uint64_t> bits_;
  int shift_;
};

/// Which of a list of hashes are in it several times. Says so of some that are not, too: it finds
/// most of those that are like no other without a table of all.
class RepeatFilter {
 public:
  explicit RepeatFilter(size_t size) : once_(size), again_(size) {}

  void Add(uint64_t hash) { (once_.MayHave(hash) ? again_ : once_).Add(hash); }
  /// REQUIRES: all were added.
  bool MayRepeat(uint64_t hash) const { return again_.MayHave(hash); }

 private:
  HashFilter once_, again_;
};

/// Sorts by key, then by entity.
template <class IdType>
void SortKeys(std::vector<KeyedBy<IdType>>& keys) {
  constexpr size_t kBuckets = 4096;
  if (std::ranges::is_sorted(keys)) return;
  if (keys.size() < 4 * kBuckets) {
    std::ranges::sort(keys);
    return;
  }
  // Keys are hashes, or places: the first bits that they have cut a long list into many short ones
  // that fit the cache.
  const uint64_t most = std::ranges::max(keys, {}, &KeyedBy<IdType>::key).key;
  const int shift = std::max(64 - std::countl_zero(most) - std::countr_zero(kBuckets), 0);
  const auto bucket_of = [shift](const KeyedBy<IdType>& keyed) {
    return static_cast<size_t>(keyed.key >> shift);
  };
  std::vector<size_t> end(kBuckets, 0);
  for (const KeyedBy<IdType>& keyed : keys)
    ++end[bucket_of(keyed)];
  std::vector<size_t> next(kBuckets, 0);
  for (size_t bucket = 1; bucket < kBuckets; ++bucket) {
    next[bucket] = end[bucket - 1];
    end[bucket] += end[bucket - 1];
  }
  // In place (American flag sort: McIlroy, Bostic and McIlroy, 1993), for a list may be as long as
  // the graph: each key goes to its bucket, and takes the place of one that goes on.
  for (size_t bucket = 0, first = 0; bucket < kBuckets; first = end[bucket++]) {
    while (next[bucket] < end[bucket]) {
      KeyedBy<IdType> keyed = keys[next[bucket]];
      for (size_t home = bucket_of(keyed); home != bucket; home = bucket_of(keyed))
        std::swap(keyed, keys[next[home]++]);
      keys[next[bucket]++] = keyed;
    }
    std::sort(keys.begin() + static_cast<std::ptrdiff_t>(first),
              keys.begin() + static_cast<std::ptrdiff_t>(end[bucket]));
  }
}

/// Drops what has no equal on the other side, nearly all of it. `key_of(side, item)`: 0 is before.
template <class Item, class KeyOf>
void DropForeign(std::vector<Item>& before, std::vector<Item>& after, KeyOf&& key_of) {
  constexpr size_t kFew = 256;
  if (before.size() < kFew || after.size() < kFew) return;
  const auto drop = [&](std::vector<Item>& items, size_t side, const std::vector<Item>& others) {
    HashFilter known(others.size());
    for (const Item& other : others)
      known.Add(key_of(1 - side, other));
    std::erase_if(items, [&](const Item& item) { return !known.MayHave(key_of(side, item)); });
  };
  drop(after, 1, before);
  drop(before, 0, after);
}
template <class IdType>
void DropForeign(std::vector<KeyedBy<IdType>>& before, std::vector<KeyedBy<IdType>>& after) {
  DropForeign(before, after, [](size_t, const KeyedBy<IdType>& keyed) { return keyed.key; });
}

/// Drops keys that a side has several times, as far as a small table shows: nearly all where few
/// keys are many.
template <class IdType>
void DropRepeated(std::vector<KeyedBy<IdType>>& before, std::vector<KeyedBy<IdType>>& after) {
  constexpr size_t kFew = 1024;
  if (before.size() < kFew || after.size() < kFew) return;
  constexpr int kBits = 13;
  const auto slot_of = [](uint64_t key) { return (key * 0x9E3779B97F4A7C15ull) >> (64 - kBits); };
  std::vector<uint64_t> repeated(size_t{1} << kBits, 0);
  for (const std::vector<KeyedBy<IdType>>* side : {&before, &after}) {
    std::vector<uint64_t> last(repeated.size(), 0);
    for (const KeyedBy<IdType>& keyed : *side) {
      uint64_t& known = last[slot_of(keyed.key)];
      if (known == keyed.key) repeated[slot_of(keyed.key)] = keyed.key;
      known = keyed.key;
    }
  }
  // Free slots hold 0: such a key is kept.
  for (std::vector<KeyedBy<IdType>>* side : {&before, &after}) {
    std::erase_if(*side, [&](const KeyedBy<IdType>& keyed) {
      return keyed.key != 0 && repeated[slot_of(keyed.key)] == keyed.key;
    });
  }
}

/// Calls `fn(befores, afters)` with the entities of each key that both sides have, in order of the
/// keys. Entities of one key keep their order.
template <class IdType, class Fn>
void ForEachCommonKey(std::vector<KeyedBy<IdType>>& before, std::vector<KeyedBy<IdType>>& after,
                      Fn&& fn) {
  DropForeign(before, after);
  SortKeys(before);
  SortKeys(after);
  std::vector<IdType> befores, afters;
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
    fn(std::span<const IdType>(befores), std::span<const IdType>(afters));
  }
}

}  // namespace strata

// Filters and lists of keys that the matcher is fast by.
#include "diff/graph/keyed.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "diff/graph/hash.h"

namespace strata {
namespace {

/// `count` entities in order with random keys, each key several times.
std::vector<Keyed> RandomKeys(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Keyed> keys;
  for (size_t i = 0; i < count; ++i)
    keys.push_back({Spread(random() % (count / 3 + 1)), EntityId{static_cast<int32_t>(i)}});
  return keys;
}

TEST_CASE("HashFilter: no false negatives and few false positives") {
  for (const size_t size : {1, 10, 1000, 100'000}) {
    HashFilter filter(size);
    for (uint64_t i = 0; i < size; ++i)
      filter.Add(Spread(i));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < size; ++i) {
      REQUIRE(filter.MayHave(Spread(i)));
      wrong += filter.MayHave(Spread(i + size)) ? 1 : 0;
    }
    CHECK_LE(8 * wrong, size);
  }
  CHECK_FALSE(HashFilter(0).MayHave(1));
}

TEST_CASE("SortKeys: short and long lists come out in the order of key and entity") {
  for (const size_t count : {0, 1, 100, 16'383, 16'384, 50'000}) {
    std::vector<Keyed> keys = RandomKeys(count, count), expected = keys;
    std::ranges::shuffle(keys, std::mt19937_64(count));
    std::ranges::sort(expected);
    SortKeys(keys);
    CHECK(keys == expected);
    SortKeys(keys);
    CHECK(keys == expected);
  }
  // Small numbers, unlike hashes, are all in one bucket.
  std::vector<Keyed> small;
  for (int32_t i = 20'000; i-- > 0;)
    small.push_back({static_cast<uint64_t>(i % 7), EntityId{i}});
  std::vector<Keyed> expected = small;
  std::ranges::sort(expected);
  SortKeys(small);
  CHECK(small == expected);
}

TEST_CASE("ForEachCommonKey: every key of both sides once, with all entities in order") {
  for (const size_t count : {20, 2000}) {
    std::vector<Keyed> before = RandomKeys(count, 1), after = RandomKeys(count, 2);
    for (size_t i = 0; i < count; i += 2)
      after[i].key = Mix(after[i].key, 1);  // which the other side has not
    std::vector<std::vector<EntityId>> seen, expected;
    std::vector<Keyed> a = before, b = after;
    std::ranges::sort(a);
    std::ranges::sort(b);
    for (auto it = a.begin(); it != a.end();) {
      const auto mine = std::ranges::equal_range(a, it->key, {}, &Keyed::key);
      const auto theirs = std::ranges::equal_range(b, it->key, {}, &Keyed::key);
      it = mine.end();
      if (theirs.empty()) continue;
      for (const auto& range : {mine, theirs}) {
        expected.emplace_back();
        for (const Keyed& keyed : range)
          expected.back().push_back(keyed.entity);
      }
    }
    ForEachCommonKey(before, after, [&](auto befores, auto afters) {
      seen.emplace_back(befores.begin(), befores.end());
      seen.emplace_back(afters.begin(), afters.end());
    });
    CHECK_FALSE(seen.empty());
    CHECK(seen == expected);
  }
}

}  // namespace
}  // namespace strata

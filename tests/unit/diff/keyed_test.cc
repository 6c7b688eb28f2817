// Hash tables and lists of keys that the matcher is fast by.
#include "diff/graph/keyed.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "diff/graph/flat_map.h"
#include "diff/graph/hash.h"

namespace strata {
namespace {

/// `count` entities in order with random keys, each key several times.
std::vector<Keyed> RandomKeys(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Keyed> keys;
  for (size_t i = 0; i < count; ++i)
    keys.push_back({Spread(random() % (count / 3 + 1)), static_cast<int32_t>(i)});
  return keys;
}

TEST_CASE("FlatMap: what was put in is found, also after growing") {
  FlatMap<int> map;
  constexpr int kCount = 1000;
  for (int i = 0; i < kCount; ++i) {
    // Small numbers are no hashes, and 0 is a key like any other.
    const auto [value, is_new] = map.Emplace(static_cast<uint64_t>(i), i);
    CHECK(is_new);
    CHECK_EQ(*value, i);
  }
  CHECK_EQ(map.size(), kCount);
  for (int i = 0; i < kCount; ++i) {
    const int* found = map.Find(static_cast<uint64_t>(i));
    REQUIRE(found != nullptr);
    CHECK_EQ(*found, i);
  }
  CHECK_FALSE(map.Contains(kCount));
  CHECK(map.Find(~uint64_t{0}) == nullptr);
}

TEST_CASE("FlatMap: a key keeps its first value until that is written to") {
  FlatMap<int> map(8);
  CHECK(map.Emplace(7, 1).second);
  const auto [value, is_new] = map.Emplace(7, 2);
  CHECK_FALSE(is_new);
  CHECK_EQ(*value, 1);
  *value = 3;
  CHECK_EQ(*map.Find(7), 3);
  CHECK_EQ(map.size(), 1);
}

TEST_CASE("FlatMap: keys that want one place are told apart") {
  // All of these have the same first bits after the multiplication that finds their place.
  constexpr uint64_t kInverse = 0xF1DE83E19937733Dull;  // of 0x9E3779B97F4A7C15, modulo 2^64
  static_assert(kInverse * 0x9E3779B97F4A7C15ull == 1);
  FlatMap<uint64_t> map;
  for (uint64_t i = 0; i < 100; ++i)
    map.Emplace(kInverse * i, i);
  CHECK_EQ(map.size(), 100);
  for (uint64_t i = 0; i < 100; ++i)
    CHECK_EQ(*map.Find(kInverse * i), i);
  CHECK_FALSE(map.Contains(kInverse * 100));
}

TEST_CASE("HashFilter: it never says no to what it has, and seldom yes to what it has not") {
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
  // Keys that are no hashes are all in one bucket.
  std::vector<Keyed> small;
  for (int32_t i = 20'000; i-- > 0;)
    small.push_back({static_cast<uint64_t>(i % 7), i});
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
    std::vector<std::vector<int32_t>> seen, expected;
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

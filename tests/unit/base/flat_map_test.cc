#include "base/flat_map.h"

#include <memory>
#include <random>
#include <string>
#include <unordered_map>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("FlatMap: finds every inserted key, also after growing") {
  FlatMap<uint64_t, int> map;
  constexpr int kCount = 1000;
  for (int i = 0; i < kCount; ++i) {
    // Small numbers are not hashes, and 0 is a key like any other.
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
  FlatMap<uint64_t, int> map(8);
  CHECK(map.Emplace(7, 1).second);
  const auto [value, is_new] = map.Emplace(7, 2);
  CHECK_FALSE(is_new);
  CHECK_EQ(*value, 1);
  *value = 3;
  CHECK_EQ(*map.Find(7), 3);
  CHECK_EQ(map.size(), 1);
}

TEST_CASE("FlatMap: any value is a value") {
  FlatMap<uint64_t, uint32_t> map;
  map.Emplace(1, UINT32_MAX);
  map.Emplace(2, 0);
  CHECK_EQ(*map.Find(1), UINT32_MAX);
  CHECK_FALSE(map.Emplace(1, 5).second);
  CHECK_EQ(*map.Find(2), 0);
}

struct SameHash {
  size_t operator()(const std::string&) const { return ~size_t{0}; }
};

TEST_CASE("FlatMap: keys of one hash are distinguished, beyond the end of the table") {
  FlatMap<std::string, size_t, SameHash> map;
  for (size_t i = 0; i < 100; ++i)
    CHECK(map.Emplace(std::to_string(i), i).second);
  CHECK_EQ(map.size(), 100);
  for (size_t i = 0; i < 100; ++i)
    CHECK_EQ(*map.Find(std::to_string(i)), i);
  CHECK_FALSE(map.Contains("100"));
}

TEST_CASE("FlatMap: values may own memory") {
  FlatMap<uint64_t, std::shared_ptr<int>> map;
  const auto shared = std::make_shared<int>(5);
  for (uint64_t i = 0; i < 50; ++i)
    map.Emplace(i, shared);
  CHECK_EQ(shared.use_count(), 51);
  map = FlatMap<uint64_t, std::shared_ptr<int>>();
  CHECK_EQ(shared.use_count(), 1);
}

TEST_CASE("FlatMap: behaves like std::unordered_map for random keys, whatever size was expected") {
  for (const size_t expected : {0, 8, 9, 1000}) {
    std::mt19937_64 random(expected);
    FlatMap<uint64_t, int> map(expected);
    std::unordered_map<uint64_t, int> oracle;
    for (int i = 0; i < 2000; ++i) {
      // The high bits alone differ, or the low ones.
      const uint64_t key = (random() % 700) << (i % 2 == 0 ? 0 : 54);
      const auto [value, is_new] = map.Emplace(key, i);
      const auto [it, was_new] = oracle.emplace(key, i);
      CHECK_EQ(is_new, was_new);
      CHECK_EQ(*value, it->second);
    }
    CHECK_EQ(map.size(), oracle.size());
    for (const auto& [key, value] : oracle)
      CHECK_EQ(*map.Find(key), value);
  }
}

}  // namespace
}  // namespace strata

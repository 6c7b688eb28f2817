#include "base/arena.h"

#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

using SmallBlocks = Arena<int, 2>;  // of four elements

TEST_CASE("arena: elements stay where they are") {
  SmallBlocks arena;
  const int* first = &arena[arena.Add(7)];
  for (int i = 0; i < 100; ++i)
    arena.Add(i);
  CHECK_EQ(&arena[0], first);
  CHECK_EQ(*first, 7);
  CHECK_EQ(arena[100], 99);
}

TEST_CASE("arena: rows are contiguous, whatever their size") {
  SmallBlocks arena;
  std::vector<uint32_t> begins;
  for (const size_t size : {3, 2, 0, 11, 4, 1}) {
    begins.push_back(arena.AddRow(size));
    const std::span<int> row = arena.Row(begins.back(), size);
    REQUIRE_EQ(row.size(), size);
    std::iota(row.begin(), row.end(), static_cast<int>(10 * size));
  }
  const SmallBlocks copy = arena;
  arena[begins[3]] = -1;
  CHECK_EQ(copy[begins[0]], 30);
  CHECK_EQ(copy[begins[1] + 1], 21);
  for (uint32_t i = 0; i < 11; ++i)
    CHECK_EQ(copy[begins[3] + i], static_cast<int>(110 + i));
  CHECK_EQ(copy[begins[4] + 3], 43);
  CHECK_EQ(copy[begins[5]], 10);
  CHECK_EQ(copy.size(), arena.size());
}

}  // namespace
}  // namespace strata

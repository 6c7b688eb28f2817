#include "runtime/plan/memory/transient.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("memory that passes is counted while it lives, by the sizes of a run") {
  TransientMemory memory;
  memory.Add({.constant = 100}, 0, 0);
  memory.Add({.constant = 8, .factors = {{0, 4}}}, 1, 2);
  memory.Add({.factors = {{0, 2}, {1, 10}}}, 2, 3);
  CHECK_EQ(memory.With(SlotSizes{0, 0}), 100);
  CHECK_EQ(memory.With(SlotSizes{20, 3}), 8 + 4 * 20 + 2 * 20 + 10 * 3);
  CHECK_EQ(memory.With(SlotSizes{20, std::nullopt}), 8 + 6 * 20);
}

TEST_CASE("at most: no way to divide a total needs more, and one needs so much") {
  std::mt19937 random(7);
  const auto draw = [&](int64_t end) { return static_cast<int64_t>(random() % end); };
  for (int trial = 0; trial < 200; ++trial) {
    TransientMemory memory;
    for (int i = 0; i < 6; ++i) {
      const auto first = static_cast<int32_t>(draw(5));
      memory.Add({.constant = draw(10), .factors = {{static_cast<int32_t>(draw(4)), draw(5)}}},
                 first, first + static_cast<int32_t>(draw(3)));
    }
    const int64_t total = draw(5), other = draw(5);
    int64_t most = 0;
    for (int64_t a = 0; a <= total; ++a) {
      for (int64_t b = 0; b <= other; ++b)
        most = std::max(most, memory.With(SlotSizes{a, total - a, b, other - b}));
    }
    const SizePartition partitions[] = {{.slots = {SlotId{0}, SlotId{1}}, .total = total},
                                        {.slots = {SlotId{2}, SlotId{3}}, .total = other}};
    CHECK_EQ(memory.AtMost(partitions), most);
  }
}

TEST_CASE("at most: a size that is part of no whole has no limit") {
  TransientMemory memory;
  memory.Add({.factors = {{0, 4}}}, 0, 0);
  CHECK_FALSE(memory.AtMost({}).has_value());
  CHECK_EQ(memory.AtMost({{{.slots = {SlotId{0}}, .total = 3}}}), 12);
}

}  // namespace
}  // namespace strata

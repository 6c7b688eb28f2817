#include "runtime/plan/memory/dynamic_arena.h"

#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

/// As many bytes as the size in slot `slot` says.
DynamicArena::Value ValueOf(int32_t slot, int32_t first, int32_t last,
                            std::vector<MemoryRange> free) {
  return {.slot = SlotId{slot},
          .bytes = {.factors = {{slot, 1}}},
          .first = first,
          .last = last,
          .free = std::move(free)};
}

TEST_CASE("values get the lowest part that is free while they live") {
  DynamicArena arena;
  arena.Add(ValueOf(0, 0, 3, {{0, 128}, {256, 512}}));
  arena.Add(ValueOf(1, 1, 1, {{0, 128}, {256, 512}}));
  arena.Add(ValueOf(2, 2, 3, {{256, 512}}));
  arena.Add(ValueOf(3, 3, 3, {{0, 512}}));
  arena.BeginRun();
  CHECK_EQ(arena.Allocate(SlotId{0}, 100), 0);
  CHECK_EQ(arena.Allocate(SlotId{1}, 100), 256);  // value 0 is in the first part
  CHECK_EQ(arena.Allocate(SlotId{2}, 192), 256);  // where value 1 was
  CHECK_EQ(arena.Allocate(SlotId{3}, 128), 128);  // between both
  arena.BeginRun();
  CHECK_EQ(arena.Allocate(SlotId{0}, 200), 256);  // sizes are others in each run
  CHECK_EQ(arena.Allocate(SlotId{1}, 64), 0);
  CHECK_EQ(arena.Allocate(SlotId{2}, 64), std::nullopt);  // all is taken
  CHECK_EQ(arena.Allocate(SlotId{3}, 0), std::nullopt);   // nothing needs no place
  CHECK_FALSE(arena.Has(SlotId{4}));
  CHECK_EQ(arena.Allocate(SlotId{4}, 64), std::nullopt);
}

TEST_CASE("a value may lie where two parts are free for another: both know of it") {
  DynamicArena arena;
  arena.Add(ValueOf(0, 0, 2, {{64, 512}}));
  arena.Add(ValueOf(1, 1, 2, {{0, 128}, {192, 512}}));
  arena.BeginRun();
  CHECK_EQ(arena.Allocate(SlotId{0}, 192), 64);
  CHECK_EQ(arena.Allocate(SlotId{1}, 192), 256);
}

TEST_CASE("what finds no place is counted as memory that passes") {
  DynamicArena arena;
  arena.Add(ValueOf(0, 0, 2, {{0, 128}}));
  arena.Add(ValueOf(1, 1, 2, {{0, 128}}));
  TransientMemory none, both, all;
  arena.AddUnallocated(SlotSizes{64, 64}, none);
  CHECK_EQ(none.With(SlotSizes{64, 64}), 0);
  arena.AddUnallocated(SlotSizes{100, 60}, both);
  CHECK_EQ(both.With(SlotSizes{100, 60}), 60);
  arena.AddAll(all);
  CHECK_EQ(all.AtMost({{{.slots = {SlotId{0}, SlotId{1}}, .total = 128}}}), 128);
}

TEST_CASE("no two values that live at the same step overlap, nor do they leave what is free") {
  std::mt19937 random(5);
  const auto draw = [&](int32_t end) { return static_cast<int32_t>(random() % end); };
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<MemoryRequest> requests;
    for (int i = 0; i < 12; ++i) {
      const int32_t first = draw(12);
      requests.push_back({.bytes = draw(500), .first = first, .last = first + draw(6)});
    }
    const MemoryPlan plan = PlanMemory(requests);
    DynamicArena arena;
    struct Lying {
      int64_t begin, end;
      int32_t first, last;
    };
    std::vector<Lying> lying;
    for (size_t i = 0; i < requests.size(); ++i) {
      lying.push_back({.begin = plan.offsets[i],
                       .end = plan.offsets[i] + requests[i].bytes,
                       .first = requests[i].first,
                       .last = requests[i].last});
    }
    arena.BeginRun();
    int32_t first = 0;
    for (int32_t slot = 0; slot < 30; ++slot) {
      first += draw(3);
      const int32_t last = first + draw(8);
      arena.Add(ValueOf(slot, first, last, FreeRanges(requests, plan, first, last)));
      const int64_t bytes = 1 + draw(300);
      const auto offset = arena.Allocate(SlotId{slot}, bytes);
      if (!offset) continue;
      CHECK_LE(*offset + bytes, plan.bytes);
      for (const Lying& other : lying) {
        if (other.last < first || last < other.first) continue;
        CHECK((other.end <= *offset || *offset + bytes <= other.begin || other.begin == other.end));
      }
      lying.push_back({.begin = *offset, .end = *offset + bytes, .first = first, .last = last});
    }
  }
}

}  // namespace
}  // namespace strata

#include "runtime/plan/memory/planner.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

using Offsets = std::vector<int64_t>;

TEST_CASE("what does not live at the same time shares a place") {
  const MemoryRequest requests[] = {{.bytes = 128, .first = 0, .last = 1},
                                    {.bytes = 128, .first = 1, .last = 2},
                                    {.bytes = 128, .first = 2, .last = 3}};
  const MemoryPlan plan = PlanMemory(requests);
  CHECK_EQ(plan.offsets, Offsets{0, 128, 0});
  CHECK_EQ(plan.bytes, 256);
  CHECK_EQ(plan.live_bytes, 256);
}

TEST_CASE("places are aligned, nothing takes no place") {
  const MemoryRequest requests[] = {{.bytes = 1, .first = 0, .last = 0},
                                    {.bytes = 0, .first = 0, .last = 0},
                                    {.bytes = 65, .first = 0, .last = 0}};
  const MemoryPlan plan = PlanMemory(requests);
  CHECK_EQ(plan.offsets, Offsets{128, 0, 0});
  CHECK_EQ(plan.bytes, 192);
  CHECK_EQ(PlanMemory({}).bytes, 0);
}

TEST_CASE("gradients take the places of what they are computed from, outputs lie side by side") {
  // Values of layers, and as their lifetimes end the larger gradients, which live to the end,
  // between short-lived values.
  constexpr int32_t kLayers = 20, kEnd = 2 * kLayers;
  std::vector<MemoryRequest> requests;
  for (int32_t layer = 0; layer < kLayers; ++layer)
    requests.push_back({.bytes = 1024, .first = layer, .last = kEnd - 1 - layer});
  int64_t output_bytes = 0;
  for (int32_t step = kLayers; step < kEnd; ++step) {
    const int64_t bytes = 1024 + 64 * (step % 3);
    requests.push_back({.bytes = 192, .first = step - 1, .last = step});
    requests.push_back({.bytes = bytes, .first = step, .last = kEnd});
    output_bytes += bytes;
  }
  const MemoryPlan plan = PlanMemory(requests);
  CHECK_EQ(plan.bytes, plan.live_bytes);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].last == kEnd) CHECK_LE(plan.offsets[i] + requests[i].bytes, output_bytes);
  }
}

TEST_CASE("random requests that live at the same step never overlap; the block is near its bound") {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<MemoryRequest> requests;
    for (int i = 0; i < 200; ++i) {
      const auto first = static_cast<int32_t>(random() % 100);
      requests.push_back({.bytes = static_cast<int64_t>(random() % 5000),
                          .first = first,
                          .last = first + static_cast<int32_t>(random() % 20)});
    }
    const MemoryPlan plan = PlanMemory(requests);
    for (size_t a = 0; a < requests.size(); ++a) {
      CHECK_EQ(plan.offsets[a] % MemoryPlan::kAlignment, 0);
      CHECK_LE(plan.offsets[a] + requests[a].bytes, plan.bytes);
      for (size_t b = 0; b < a; ++b) {
        if (requests[a].last < requests[b].first || requests[b].last < requests[a].first) continue;
        if (requests[a].bytes == 0 || requests[b].bytes == 0) continue;
        CHECK((plan.offsets[a] + requests[a].bytes <= plan.offsets[b] ||
               plan.offsets[b] + requests[b].bytes <= plan.offsets[a]));
      }
    }
    CHECK_GE(plan.bytes, plan.live_bytes);
    CHECK_LE(plan.bytes, plan.live_bytes * 5 / 4);
  }
}

}  // namespace
}  // namespace strata

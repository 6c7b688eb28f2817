#include "runtime/plan/fetches.h"

#include <algorithm>
#include <map>
#include <random>

#include <doctest/doctest.h>

namespace strata {
namespace {

using Fetches = std::vector<std::vector<Fetch>>;

constexpr int64_t kKilobyte = 1024, kMegabyte = 1024 * kKilobyte;

StepMemory Step(std::vector<MemoryRange> ranges, int64_t spare_lines = 0) {
  return {.ranges = std::move(ranges), .spare_lines = spare_lines};
}

TEST_CASE("a step fetches what the next one has never touched, as far as it can") {
  const std::vector<StepMemory> steps = {Step({{0, 512}}, 100), Step({{4096, 8192}}, 3),
                                         Step({{9216, 10240}})};
  CHECK(PlanFetches(steps) == Fetches{{{.step = 1, .range = 0, .offset = 0, .lines = 64},
                                       {.step = 2, .range = 0, .offset = 0, .lines = 16}},
                                      {},
                                      {}});
}

TEST_CASE("what one step cannot fetch the next one does; nobody fetches for itself") {
  const std::vector<StepMemory> steps = {Step({{0, 64}}, 10), Step({{64, 128}}, 20),
                                         Step({{4096, 4096 + 40 * 64}}, 50)};
  CHECK(PlanFetches(steps) == Fetches{{{.step = 2, .range = 0, .offset = 0, .lines = 10}},
                                      {{.step = 2, .range = 0, .offset = 640, .lines = 20}},
                                      {}});
}

TEST_CASE("what was touched lately is near, until much else was touched") {
  const MemoryRange weights{0, 4096}, little{8192, 16384}, much{kMegabyte, 2 * kMegabyte};
  const auto fetched = [&](const MemoryRange& between) {
    const std::vector<StepMemory> steps = {Step({weights}), Step({between}),
                                           Step({{5 * kMegabyte, 5 * kMegabyte + 64}}, 1000),
                                           Step({weights})};
    return PlanFetches(steps)[2];
  };
  CHECK(fetched(little).empty());
  CHECK(fetched(much) == std::vector<Fetch>{{.step = 3, .range = 0, .offset = 0, .lines = 64}});
}

TEST_CASE("no more is fetched than a cache keeps until it is used") {
  std::vector<StepMemory> steps = {Step({{0, 64}}, 1 << 20), Step({{kMegabyte, 3 * kMegabyte}}, 7),
                                   Step({{4 * kMegabyte, 4 * kMegabyte + 640}})};
  const Fetches fetches = PlanFetches(steps);
  REQUIRE_EQ(fetches[0].size(), 1);
  CHECK_EQ(fetches[0][0].lines, 1024);
  CHECK(fetches[1] == std::vector<Fetch>{{.step = 2, .range = 0, .offset = 0, .lines = 7}});
}

TEST_CASE("random steps: fetches lie in later steps' ranges, within what is spare, none twice") {
  std::mt19937 random(11);
  const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % most); };
  for (int run = 0; run < 50; ++run) {
    std::vector<StepMemory> steps;
    for (int64_t i = 0; i < 60; ++i) {
      StepMemory& step = steps.emplace_back();
      step.spare_lines = run % 3 == 0 ? 0 : draw(400);
      for (int64_t r = draw(4); r-- > 0;) {
        const int64_t begin = draw(4 * kMegabyte) / 64 * 64;
        step.ranges.push_back({begin, begin + draw(run % 2 == 0 ? 4096 : 200000)});
      }
    }
    const Fetches fetches = PlanFetches(steps);
    REQUIRE_EQ(fetches.size(), steps.size());
    std::map<std::pair<int32_t, int32_t>, int64_t> next;  // offset, by step and range
    std::vector<int64_t> lines_for(steps.size());
    int64_t pending = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      pending -= lines_for[i];
      int64_t lines = 0;
      for (const Fetch& fetch : fetches[i]) {
        REQUIRE(fetch.step > static_cast<int32_t>(i));
        const auto later = static_cast<size_t>(fetch.step);
        const MemoryRange& range = steps[later].ranges.at(static_cast<size_t>(fetch.range));
        CHECK(range.begin + fetch.offset + (fetch.lines - 1) * Fetch::kLineBytes < range.end);
        int64_t& offset = next[{fetch.step, fetch.range}];
        CHECK(fetch.offset >= offset);
        offset = fetch.offset + fetch.lines * Fetch::kLineBytes;
        lines_for[later] += fetch.lines;
        lines += fetch.lines;
      }
      CHECK(lines <= steps[i].spare_lines);
      pending += lines;
      CHECK(pending <= 1024);
    }
  }
}

}  // namespace
}  // namespace strata

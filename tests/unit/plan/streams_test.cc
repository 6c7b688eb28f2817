#include "runtime/plan/streams.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

using Waits = std::vector<std::vector<int32_t>>;

TEST_CASE("one stream needs no events") {
  const StreamPlan plan = AssignEvents(std::vector<StreamStep>{{0, {}}, {0, {0}}, {0, {0, 1}}});
  CHECK_EQ(plan.num_events, 0);
  CHECK(plan.joins.empty());
}

TEST_CASE("a prefetch: recorded once, waited for by the first reader alone") {
  // 0 compute, 1 gather on stream 1, 2 compute, 3 and 4 read the gathered.
  const StreamPlan plan =
      AssignEvents(std::vector<StreamStep>{{0, {}}, {1, {}}, {0, {0}}, {0, {1, 2}}, {0, {1}}});
  CHECK_EQ(plan.waits, Waits{{}, {}, {}, {1}, {}});
  CHECK_EQ(plan.num_events, 1);
  CHECK(plan.joins.empty());
}

TEST_CASE("what the awaited step had waited for is known, too") {
  // Stream 2 waits for 1, which waited for 0: it needs no event of 0.
  const StreamPlan plan = AssignEvents(std::vector<StreamStep>{{0, {}}, {1, {0}}, {2, {0, 1}}});
  CHECK_EQ(plan.waits, Waits{{}, {0}, {1}});
  CHECK_EQ(plan.joins, std::vector<int32_t>{2});
}

TEST_CASE("a stream that nobody waited for joins at the end") {
  const StreamPlan plan = AssignEvents(std::vector<StreamStep>{{0, {}}, {1, {0}}});
  CHECK_EQ(plan.joins, std::vector<int32_t>{1});
  CHECK_EQ(plan.num_events, 2);
}

/// Which steps are done before each, by streams and waits alone.
std::vector<std::set<int32_t>> DoneBefore(const std::vector<StreamStep>& steps,
                                          const Waits& waits) {
  std::vector<std::set<int32_t>> done(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto learn = [&](size_t other) {
      done[i].insert(static_cast<int32_t>(other));
      done[i].insert(done[other].begin(), done[other].end());
    };
    for (size_t j = i; j-- > 0;) {
      if (steps[j].stream != steps[i].stream) continue;
      learn(j);
      break;
    }
    for (const int32_t wait : waits[i])
      learn(static_cast<size_t>(wait));
  }
  return done;
}

bool IsOrdered(const std::vector<StreamStep>& steps, const Waits& waits) {
  const auto done = DoneBefore(steps, waits);
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const int32_t needed : steps[i].after) {
      if (!done[i].contains(needed)) return false;
    }
  }
  return true;
}

TEST_CASE("random programs: all is ordered, and no wait can be left out") {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<StreamStep> steps;
    for (int32_t i = 0; i < 40; ++i) {
      StreamStep step{.stream = static_cast<int32_t>(random() % 4), .after = {}};
      for (size_t k = random() % 3; i > 0 && k > 0; --k)
        step.after.push_back(static_cast<int32_t>(random() % static_cast<size_t>(i)));
      steps.push_back(step);
    }
    const StreamPlan plan = AssignEvents(steps);
    CHECK(IsOrdered(steps, plan.waits));
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const int32_t wait : plan.waits[i]) {
        CHECK(plan.records[static_cast<size_t>(wait)]);
        Waits fewer = plan.waits;
        std::erase(fewer[i], wait);
        CHECK_FALSE(IsOrdered(steps, fewer));
      }
    }
  }
}

}  // namespace
}  // namespace strata

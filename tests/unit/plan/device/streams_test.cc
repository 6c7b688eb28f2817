#include "runtime/plan/device/streams.h"

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <utility>
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

TEST_CASE("numbers of streams are names: large ones cost what small ones do") {
  const std::vector<StreamStep> steps = {{0, {}}, {65535, {}}, {65000, {0}}, {0, {1, 2}}};
  const StreamPlan plan = AssignEvents(steps);
  const StreamPlan small =
      AssignEvents(std::vector<StreamStep>{{0, {}}, {2, {}}, {1, {0}}, {0, {1, 2}}});
  CHECK_EQ(plan.waits, small.waits);
  CHECK_EQ(plan.forks, small.forks);
  const std::vector<StreamMemory> memory = {{.stream = 65535, .used_by = {1, 3}},
                                            {.stream = 0, .used_by = {0, 2}},
                                            {.stream = 7, .used_by = {0}}};
  CHECK_EQ(PlanReleases(steps, plan, memory), std::vector<int32_t>{4, 3, 4});
}

TEST_CASE("a prefetch: recorded once, waited for by the first reader alone") {
  // 0 compute, 1 gather on stream 1, 2 compute, 3 and 4 read the gathered.
  const StreamPlan plan =
      AssignEvents(std::vector<StreamStep>{{0, {}}, {1, {}}, {0, {0}}, {0, {1, 2}}, {0, {1}}});
  CHECK_EQ(plan.waits, Waits{{}, {}, {}, {1}, {}});
  CHECK_EQ(plan.forks, std::vector<int32_t>{1});
  CHECK_EQ(plan.num_events, 2);
  CHECK(plan.joins.empty());
}

TEST_CASE("what the awaited step had waited for is known, too") {
  // Stream 2 waits for 1, which waited for 0: it needs no event of 0.
  const StreamPlan plan = AssignEvents(std::vector<StreamStep>{{0, {}}, {1, {0}}, {2, {0, 1}}});
  CHECK_EQ(plan.waits, Waits{{}, {0}, {1}});
  CHECK_EQ(plan.joins, std::vector<int32_t>{2});
  CHECK(plan.forks.empty());  // both began after a step of stream 0
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

/// What is done before what, with a bit for each step but the first, which is what stream 0 did
/// before, and the last, which is what it does next.
class Order {
 public:
  explicit Order(const std::vector<StreamStep>& steps) : steps_(steps), before_(steps.size() + 2) {}

  size_t end() const { return steps_.size() + 1; }
  int32_t StreamOf(size_t node) const {
    return node == 0 || node == end() ? 0 : steps_[node - 1].stream;
  }
  /// With the order within streams and these edges, by node.
  const std::vector<uint32_t>& Close(const std::vector<uint32_t>& edges) {
    for (size_t node = 0; node <= end(); ++node) {
      before_[node] = 0;
      for (size_t other = 0; other < node; ++other) {
        const bool is_edge = (edges[node] >> other & 1U) != 0;
        if (is_edge || StreamOf(other) == StreamOf(node))
          before_[node] |= before_[other] | 1U << other;
      }
    }
    return before_;
  }

 private:
  const std::vector<StreamStep>& steps_;
  std::vector<uint32_t> before_;
};

int NumBits(uint32_t bits) {
  return std::popcount(bits);
}

struct Cost {
  int events = 0, waits = 0;
};

Cost CostOf(const std::vector<uint32_t>& edges) {
  Cost cost;
  uint32_t awaited = 0;
  for (const uint32_t edge : edges) {
    cost.waits += NumBits(edge);
    awaited |= edge;
  }
  cost.events = NumBits(awaited);
  return cost;
}

TEST_CASE(
    "all small programs: no plan that orders the same and no more has fewer events or waits") {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    std::vector<StreamStep> steps;
    for (int32_t i = 0; i < 4; ++i) {
      StreamStep step{.stream = static_cast<int32_t>(random() % 3), .after = {}};
      for (int32_t j = 0; j < i; ++j) {
        if (random() % 3 == 0) step.after.push_back(j);
      }
      steps.push_back(step);
    }
    const StreamPlan plan = AssignEvents(steps);
    Order order(steps);
    const size_t num_nodes = order.end() + 1;

    std::vector<uint32_t> wanted(num_nodes, 0), planned(num_nodes, 0);
    for (size_t i = 0; i < steps.size(); ++i) {
      wanted[i + 1] |= 1U;
      wanted[order.end()] |= 1U << (i + 1);
      for (const int32_t after : steps[i].after)
        wanted[i + 1] |= 1U << (after + 1);
      for (const int32_t wait : plan.waits[i])
        planned[i + 1] |= 1U << (wait + 1);
    }
    for (const int32_t fork : plan.forks)
      planned[static_cast<size_t>(fork) + 1] |= 1U;
    for (const int32_t join : plan.joins)
      planned[order.end()] |= 1U << (join + 1);
    const std::vector<uint32_t> goal = order.Close(wanted);
    CHECK_EQ(order.Close(planned), goal);
    CHECK_EQ(CostOf(planned).events, plan.num_events);

    // Every set of waits between streams that the goal allows.
    std::vector<std::pair<size_t, size_t>> choices;  // awaited, waiting
    for (size_t node = 0; node < num_nodes; ++node) {
      for (size_t other = 0; other < node; ++other) {
        if (order.StreamOf(other) != order.StreamOf(node) && (goal[node] >> other & 1U) != 0)
          choices.emplace_back(other, node);
      }
    }
    Cost least{.events = 100, .waits = 100};
    for (uint32_t set = 0; set < 1U << choices.size(); ++set) {
      std::vector<uint32_t> edges(num_nodes, 0);
      for (size_t i = 0; i < choices.size(); ++i) {
        if ((set >> i & 1U) != 0) edges[choices[i].second] |= 1U << choices[i].first;
      }
      if (order.Close(edges) != goal) continue;
      least.events = std::min(least.events, CostOf(edges).events);
      least.waits = std::min(least.waits, CostOf(edges).waits);
    }
    CHECK_EQ(plan.num_events, least.events);
    CHECK_EQ(CostOf(planned).waits, least.waits);
  }
}

TEST_CASE("memory of one stream goes back after its last use") {
  const std::vector<StreamStep> steps = {{0, {}}, {0, {0}}, {0, {}}};
  const std::vector<StreamMemory> memory = {{.stream = 0, .used_by = {0, 1}}};
  CHECK_EQ(PlanReleases(steps, AssignEvents(steps), memory), std::vector<int32_t>{1});
}

TEST_CASE("memory that another stream reads goes back when its own has waited for the reader") {
  // 0 makes it, 1 reads it on a side stream, 2 does not know of that, 3 waits for 1.
  const std::vector<StreamStep> steps = {{0, {}}, {1, {0}}, {0, {}}, {0, {1}}, {0, {}}};
  const std::vector<StreamMemory> memory = {{.stream = 0, .used_by = {0, 1}},
                                            {.stream = 1, .used_by = {1, 3}}};
  CHECK_EQ(PlanReleases(steps, AssignEvents(steps), memory), std::vector<int32_t>{3, 5});
}

TEST_CASE("random programs: memory goes back as early as it may, and not before") {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<StreamStep> steps;
    for (int32_t i = 0; i < 30; ++i) {
      StreamStep step{.stream = static_cast<int32_t>(random() % 3), .after = {}};
      for (size_t k = random() % 3; i > 0 && k > 0; --k)
        step.after.push_back(static_cast<int32_t>(random() % static_cast<size_t>(i)));
      steps.push_back(step);
    }
    std::vector<StreamMemory> memory;
    for (int32_t i = 0; i < 30; ++i) {
      StreamMemory piece{.stream = steps[static_cast<size_t>(i)].stream, .used_by = {i}};
      for (int32_t j = i + 1; j < 30; ++j) {
        if (random() % 8 == 0) piece.used_by.push_back(j);
      }
      memory.push_back(piece);
    }
    const StreamPlan plan = AssignEvents(steps);
    const std::vector<int32_t> releases = PlanReleases(steps, plan, memory);
    const auto done = DoneBefore(steps, plan.waits);
    for (size_t i = 0; i < memory.size(); ++i) {
      int32_t first = 30;  // step of its stream after which all uses are done, itself included
      for (int32_t j = memory[i].used_by.back(); j < 30 && first == 30; ++j) {
        if (steps[static_cast<size_t>(j)].stream != memory[i].stream) continue;
        const bool is_safe = std::ranges::all_of(memory[i].used_by, [&](int32_t use) {
          return use == j || done[static_cast<size_t>(j)].contains(use);
        });
        if (is_safe) first = j;
      }
      CHECK_EQ(releases[i], first);
    }
  }
}

}  // namespace
}  // namespace strata

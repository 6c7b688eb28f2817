#include "diff/graph/order.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

namespace strata {
namespace {

std::vector<OrderPoint> PointsOf(std::vector<int32_t> after) {
  std::vector<OrderPoint> points;
  for (size_t i = 0; i < after.size(); ++i)
    points.push_back({static_cast<int32_t>(i), after[i]});
  return points;
}

size_t CountKept(const std::vector<bool>& kept) {
  return static_cast<size_t>(std::ranges::count(kept, true));
}

TEST_CASE("the largest ordered set leaves out what moved") {
  CHECK_EQ(LargestOrderedSet(PointsOf({})), std::vector<bool>{});
  CHECK_EQ(LargestOrderedSet(PointsOf({10, 20, 30})), std::vector<bool>{true, true, true});
  CHECK_EQ(LargestOrderedSet(PointsOf({1, 2, 0, 3})), std::vector<bool>{true, true, false, true});
  CHECK_EQ(CountKept(LargestOrderedSet(PointsOf({3, 2, 1, 0}))), 1);
}

TEST_CASE("the largest ordered set is as large as the quadratic method finds it") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<int32_t> after(40);
    std::iota(after.begin(), after.end(), 0);
    std::ranges::shuffle(after, random);
    std::vector<int32_t> length(after.size(), 1);
    for (size_t i = 0; i < after.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (after[j] < after[i]) length[i] = std::max(length[i], length[j] + 1);
      }
    }
    const std::vector<bool> kept = LargestOrderedSet(PointsOf(after));
    CHECK_EQ(CountKept(kept), static_cast<size_t>(*std::ranges::max_element(length)));
    int32_t last = -1;
    for (size_t i = 0; i < after.size(); ++i) {
      if (!kept[i]) continue;
      CHECK_GT(after[i], last);
      last = after[i];
    }
  }
}

TEST_CASE("preferences decide between equally large sets, the same way in both directions") {
  const std::vector<OrderPoint> points{{0, 1, 5}, {1, 0, 9}};
  CHECK_EQ(LargestOrderedSet(points), std::vector<bool>{false, true});
  const std::vector<OrderPoint> reverse{{0, 1, 9}, {1, 0, 5}};
  CHECK_EQ(LargestOrderedSet(reverse), std::vector<bool>{true, false});
}

TEST_CASE("positions are interpolated between anchors") {
  const PositionMap map({{10, 100}, {20, 140}});
  CHECK_EQ(map.AfterOf(10), 100);
  CHECK_EQ(map.AfterOf(15), 120);
  CHECK_EQ(map.AfterOf(8), 98);
  CHECK_EQ(map.AfterOf(25), 145);
  CHECK_EQ(map.BeforeOf(120), 15);
  CHECK_EQ(map.Distance(15, 120), 0);
  CHECK_GT(map.Distance(15, 130), map.Distance(15, 125));
}

}  // namespace
}  // namespace strata

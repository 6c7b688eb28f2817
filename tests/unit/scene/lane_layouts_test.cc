#include "scene/lane_layouts.h"

#include <algorithm>
#include <initializer_list>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "scene/dot_worker.h"

namespace strata {
namespace {

using Edge = std::pair<LaneNodeId, LaneNodeId>;

std::vector<Edge> Edges(std::initializer_list<std::pair<int32_t, int32_t>> numbers) {
  std::vector<Edge> edges;
  for (const auto& [from, to] : numbers)
    edges.emplace_back(LaneNodeId{from}, LaneNodeId{to});
  return edges;
}

TEST_CASE("crossings, covered boxes, detours and rows are counted") {
  // 0 1 above 2 3, with crossing edges.
  LaneShape shape{.nodes = 4, .edges = Edges({{0, 3}, {1, 2}})};
  LanePlaces places{.row = {0, 0, 1, 1}, .x = {-1, 1, -1, 1}, .rows = 2};
  LaneCost cost = CostOf(shape, places);
  CHECK(cost.crossings == 1);
  CHECK(cost.covered == 0);
  CHECK(cost.length == 4);
  CHECK(cost.rows == 2);
  places.x = {-1, 1, 1, -1};
  cost = CostOf(shape, places);
  CHECK(cost.crossings == 0);
  CHECK(cost.length == 0);
  // An edge across a row, through the box between its ends; then beside it.
  shape = {.nodes = 3, .edges = Edges({{0, 1}, {0, 2}, {1, 2}})};
  places = {.row = {0, 1, 2}, .x = {0, 0, 0}, .rows = 3};
  CHECK(CostOf(shape, places).covered == 1);
  places.x = {0, 2, 0};
  CHECK(CostOf(shape, places).covered == 0);
}

TEST_CASE("edges from one node do not cross") {
  const LaneShape shape{.nodes = 3, .edges = Edges({{0, 1}, {0, 2}})};
  CHECK(CostOf(shape, {.row = {0, 1, 1}, .x = {0, -1, 1}, .rows = 2}).crossings == 0);
}

TEST_CASE("rows by longest paths contain at most one node per column") {
  LaneShape shape{.nodes = 6, .edges = {}, .columns = 2};
  for (int32_t i = 1; i < 6; ++i)
    shape.edges.emplace_back(LaneNodeId{0}, LaneNodeId{i});
  const LanePlaces places = PlaceByPaths(shape);
  CHECK(places.rows == 4);
  CHECK(places.row.values() == std::vector<int32_t>{0, 1, 1, 2, 2, 3});
}

/// Two chains whose ends are swapped: longest paths keep program order.
LaneShape Twisted() {
  return {.nodes = 8,
          .edges = Edges(
              {{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 5}, {3, 4}, {4, 6}, {4, 7}, {5, 6}, {5, 7}}),
          .columns = 2};
}

TEST_CASE("a lane is laid out by dot only if the result is clearly better") {
  LaneLayouts lanes;
  const LanePlaces chosen = lanes.Of(Twisted());
  CHECK(CostOf(Twisted(), chosen).total() <= CostOf(Twisted(), PlaceByPaths(Twisted())).total());
  CHECK(lanes.statistics().compared == (HasGraphviz() ? 1 : 0));
  CHECK(lanes.statistics().failed == 0);
}

TEST_CASE("equal shapes are laid out once and identically") {
  LaneLayouts lanes, others;
  const LanePlaces first = lanes.Of(Twisted()), again = lanes.Of(Twisted());
  CHECK(lanes.statistics().shapes == 1);
  CHECK(lanes.statistics().lanes == 2);
  CHECK(first.x == again.x);
  CHECK(others.Of(Twisted()).x == first.x);
}

TEST_CASE("large lanes, and lanes beyond the budget, are laid out by longest paths") {
  LaneLayouts small({.max_nodes = 4}), poor({.budget = 4}), none({.dot = false});
  for (LaneLayouts* lanes : {&small, &poor, &none}) {
    CHECK(lanes->Of(Twisted()).x == PlaceByPaths(Twisted()).x);
    CHECK(lanes->statistics().compared == 0);
  }
}

TEST_CASE("a worker that times out is abandoned, and its lane is laid out by longest paths") {
  // `dot` needs a hundred times the limit.
  LaneShape shape{.nodes = 400, .edges = {}, .columns = 4};
  for (int32_t to = 1; to < shape.nodes; ++to) {
    for (int32_t k = 0; k < 3; ++k)
      shape.edges.emplace_back(LaneNodeId{(to * 7 + k * 13) % to}, LaneNodeId{to});
  }
  std::ranges::sort(shape.edges);
  shape.edges.erase(std::unique(shape.edges.begin(), shape.edges.end()), shape.edges.end());
  LaneLayouts lanes({.time_limit_ms = 1});
  CHECK(lanes.Of(shape).row == PlaceByPaths(shape).row);
  CHECK(lanes.statistics().failed == (HasGraphviz() ? 1 : 0));
  // The next lane gets a new worker.
  if (HasGraphviz()) CHECK(DotWorker(10'000).Place(Twisted()).has_value());
}

TEST_CASE("the process of dot keeps no file open that its parent closes") {
  if (!HasGraphviz()) return;
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  DotWorker worker(10'000);
  REQUIRE(worker.Place({.nodes = 2, .edges = Edges({{0, 1}})}).has_value());
  close(ends[0]);
  // Who waits for the end of a connection sees it while the process lives.
  pollfd ended{.fd = ends[1], .events = POLLIN, .revents = 0};
  CHECK(poll(&ended, 1, 0) == 1);
  close(ends[1]);
}

}  // namespace
}  // namespace strata

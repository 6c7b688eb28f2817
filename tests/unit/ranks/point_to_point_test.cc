#include "runtime/ranks/point_to_point.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/ranks/thread_team.h"
#include "tests/support/graphs.h"
#include "tests/support/meshes.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using testing::MeshOf;
using testing::MessageOf;
using testing::OrDie;

TEST_CASE("messages of a key arrive in order, those of other keys do not disturb") {
  ThreadTeam team(MeshOf("pp=3"), {.timeout = std::chrono::seconds(10)});
  std::vector<int64_t> sums(3);
  REQUIRE_OK(team.Run([&](int64_t rank) {
    const int64_t next = (rank + 1) % 3, previous = (rank + 2) % 3;
    for (int64_t i = 0; i < 4; ++i) {
      RankTeam::Send(next, "odd", {at::full({1}, 2 * i + 1)});
      RankTeam::Send(next, "even", {at::full({1}, 2 * i), at::full({1}, rank)});
    }
    for (int64_t i = 0; i < 4; ++i) {
      const std::vector<Tensor> even = RankTeam::Receive(previous, "even");
      CHECK_EQ(even.at(0).item<int64_t>(), 2 * i);
      CHECK_EQ(even.at(1).item<int64_t>(), previous);
      const Tensor odd = RankTeam::Receive(previous, "odd").at(0);
      sums[static_cast<size_t>(rank)] += odd.item<int64_t>();
    }
    return Ok();
  }));
  CHECK_EQ(sums, std::vector<int64_t>{16, 16, 16});
}

TEST_CASE("a message that does not come ends the run, with the rank and the key") {
  ThreadTeam team(MeshOf("pp=2"), {.timeout = std::chrono::milliseconds(50)});
  CHECK_EQ(MessageOf(team.Run([](int64_t rank) {
             if (rank == 1) RankTeam::Receive(0, "1RECV_F0");
             return Ok();
           })),
           "rank 1: waited 0.05 s for 1RECV_F0 of rank 0");
}

TEST_CASE("a failing rank ends the waits of the others") {
  ThreadTeam team(MeshOf("pp=2"), {.timeout = std::chrono::seconds(100)});
  CHECK_EQ(MessageOf(team.Run([](int64_t rank) -> Status {
             if (rank == 0) return Error("no memory");
             RankTeam::Receive(0, "1RECV_F0");
             return Ok();
           })),
           "rank 0: no memory");
}

}  // namespace
}  // namespace strata

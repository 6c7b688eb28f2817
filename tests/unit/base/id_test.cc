#include "base/id.h"

#include <doctest/doctest.h>

using namespace strata;

namespace {
using RoomId = Id<struct RoomTag>;
}

TEST_CASE("an id is invalid until it is assigned") {
  CHECK_FALSE(RoomId().valid());
  CHECK(RoomId{0}.valid());
}

TEST_CASE("an IdVector returns the ids under which it stores elements") {
  IdVector<RoomId, int> beds;
  const RoomId first = beds.Add(2), second = beds.Add(3);
  CHECK_EQ(beds[first], 2);
  CHECK_EQ(beds[second], 3);
  beds[first] = 4;
  CHECK_EQ(beds.values(), std::vector<int>{4, 3});
  CHECK_EQ(beds.end_id(), RoomId{2});
}

TEST_CASE("an IdVector of bool hands out references that can be assigned") {
  IdVector<RoomId, bool> open(2, false);
  open[RoomId{1}] = true;
  CHECK_FALSE(open[RoomId{0}]);
  CHECK(open[RoomId{1}]);
}

TEST_CASE("IdsOf visits every id once, in order") {
  const IdVector<RoomId, int> beds = {5, 6, 7};
  std::vector<int32_t> visited;
  for (RoomId room : IdsOf(beds))
    visited.push_back(room.index);
  CHECK_EQ(visited, std::vector<int32_t>{0, 1, 2});
}

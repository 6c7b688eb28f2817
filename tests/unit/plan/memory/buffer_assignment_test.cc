#include "runtime/plan/memory/buffer_assignment.h"

#include <string_view>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

Plan LowerBody(std::string_view body) {
  return OrDie(Lower(*ParseBody(body)->FindGraph("g"), {.static_memory = true}));
}

int32_t SlotOf(const Plan& plan, std::string_view name) {
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].name == name) return static_cast<int32_t>(i);
  }
  FAIL("no slot");
  return -1;
}

constexpr std::string_view kChain = R"(
  x = placeholder : f32[32][1]cpu
  a = aten.add.Tensor(x, x) : f32[32][1]cpu
  v = aten.view.default(a, [4, 8]) : f32[4, 8][8, 1]cpu ~a
  b = aten.mul.Tensor(a, x) : f32[32][1]cpu
  c = aten.mul.Tensor(v, v) : f32[4, 8][8, 1]cpu
  d = aten.add.Tensor(b, b) : f32[32][1]cpu
  output([c, d])
)";

TEST_CASE("a storage lives as long as any view of it; outputs live forever") {
  const Plan plan = LowerBody(kChain);
  const BufferAssignment places(plan);
  CHECK_EQ(places.last_use(SlotOf(plan, "x")), 2);
  CHECK_EQ(places.last_use(SlotOf(plan, "a")), 3);
  CHECK_EQ(places.last_use(SlotOf(plan, "b")), 4);
  CHECK_EQ(places.last_use(SlotOf(plan, "c")), BufferAssignment::kForever);
  CHECK(places.is_output(SlotOf(plan, "d")));
  CHECK_FALSE(places.is_output(SlotOf(plan, "a")));
}

TEST_CASE("a result shares the place of an operand that dies with it and lies as it does") {
  const Plan plan = LowerBody(kChain);
  const int32_t a = SlotOf(plan, "a"), b = SlotOf(plan, "b"), c = SlotOf(plan, "c"),
                d = SlotOf(plan, "d");
  const auto any = [](int32_t) { return true; };
  BufferAssignment places(plan);
  places.Add(a, 0);
  places.Add(b, 2);
  places.Share(b, 2, any);  // a is read later
  places.Add(c, 3);
  places.Share(c, 3, any);  // as `v` lies, which is memory of a
  places.Add(d, 4);
  SUBCASE("where it may") {
    places.Share(d, 4, any);
    const BufferAssignment::Arena arena = places.Assign();
    CHECK_EQ(arena.bytes, 256);
    CHECK_EQ(arena.offsets[static_cast<size_t>(a)], arena.offsets[static_cast<size_t>(c)]);
    CHECK_EQ(arena.offsets[static_cast<size_t>(b)], arena.offsets[static_cast<size_t>(d)]);
    CHECK_EQ(arena.offsets[static_cast<size_t>(SlotOf(plan, "x"))], -1);
  }
  SUBCASE("but not where it may not") {
    places.Share(d, 4, [](int32_t) { return false; });
    CHECK_EQ(places.Assign().bytes, 384);
  }
}

TEST_CASE("what a step writes in place is told") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[32][1]cpu
  a = aten.clone.default(x) : f32[32][1]cpu
  b = aten.add_.Tensor(a, x) : f32[32][1]cpu ~a
  output([b])
)");
  const BufferAssignment places(plan);
  CHECK(places.is_written(SlotOf(plan, "a")));
  CHECK_FALSE(places.is_written(SlotOf(plan, "x")));
  CHECK(places.is_output(SlotOf(plan, "a")));
}

}  // namespace
}  // namespace strata

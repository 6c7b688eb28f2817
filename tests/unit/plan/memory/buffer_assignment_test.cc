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

SlotId SlotOf(const Plan& plan, std::string_view name) {
  for (const SlotId slot : IdsOf(plan.slots))
    if (plan.slots[slot].name == name) return slot;
  FAIL("no slot");
  return {};
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
  CHECK_EQ(places.last_use(SlotOf(plan, "x")), StepId{2});
  CHECK_EQ(places.last_use(SlotOf(plan, "a")), StepId{3});
  CHECK_EQ(places.last_use(SlotOf(plan, "b")), StepId{4});
  CHECK_EQ(places.last_use(SlotOf(plan, "c")), BufferAssignment::kForever);
  CHECK(places.is_output(SlotOf(plan, "d")));
  CHECK_FALSE(places.is_output(SlotOf(plan, "a")));
}

TEST_CASE("a result shares the place of an operand that dies with it and lies as it does") {
  const Plan plan = LowerBody(kChain);
  const SlotId a = SlotOf(plan, "a"), b = SlotOf(plan, "b"), c = SlotOf(plan, "c"),
               d = SlotOf(plan, "d");
  const auto any = [](SlotId) { return true; };
  BufferAssignment places(plan);
  places.Add(a, StepId{0});
  places.Add(b, StepId{2});
  places.Share(b, StepId{2}, any);  // a is read later
  places.Add(c, StepId{3});
  places.Share(c, StepId{3}, any);  // as `v` lies, which is memory of a
  places.Add(d, StepId{4});
  SUBCASE("where it may") {
    places.Share(d, StepId{4}, any);
    const BufferAssignment::Arena arena = places.Assign();
    CHECK_EQ(arena.bytes, 256);
    CHECK_EQ(arena.offsets[a], arena.offsets[c]);
    CHECK_EQ(arena.offsets[b], arena.offsets[d]);
    CHECK_EQ(arena.offsets[SlotOf(plan, "x")], -1);
  }
  SUBCASE("but not where it may not") {
    places.Share(d, StepId{4}, [](SlotId) { return false; });
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

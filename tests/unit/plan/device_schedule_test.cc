#include "runtime/plan/device_schedule.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;
using After = std::vector<std::vector<int32_t>>;

Plan LowerBody(std::string_view body) {
  return OrDie(Lower(*ParseBody(body)->FindGraph("g")));
}

After AfterOf(const Plan& plan) {
  After after;
  for (const StreamStep& step : StreamStepsOf(plan))
    after.push_back(step.after);
  return after;
}

/// `1: a b`: after step 1 the tensors of a and b go.
std::vector<std::string> ReleasesOf(const Plan& plan, const DeviceSchedule& schedule) {
  std::vector<std::string> lines;
  const auto add = [&](std::string line, const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots)
      line += " " + plan.slots[static_cast<size_t>(slot)].name;
    if (!slots.empty()) lines.push_back(line);
  };
  for (size_t i = 0; i < schedule.releases.size(); ++i)
    add(std::to_string(i) + ":", schedule.releases[i]);
  add("end:", schedule.last_releases);
  return lines;
}

using Lines = std::vector<std::string>;

TEST_CASE("a reader comes after the writer, also through a view; reading twice orders nothing") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4, 4][4, 1]cuda:0
  a = aten.relu.default(x) : f32[4, 4][4, 1]cuda:0
  t = aten.t.default(a) : f32[4, 4][1, 4]cuda:0 ~a
  b = aten.mm.default(t, x) : f32[4, 4][4, 1]cuda:0
  c = aten.mm.default(a, x) : f32[4, 4][4, 1]cuda:0
  output([b, c])
)");
  CHECK_EQ(AfterOf(plan), After{{}, {}, {0}, {0}});
}

TEST_CASE("what writes comes after those that read and wrote the memory before") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4][1]cuda:0
  a = aten.relu.default(x) : f32[4][1]cuda:0
  b = aten.neg.default(a) : f32[4][1]cuda:0
  c = aten.add_.Tensor(a, x) : f32[4][1]cuda:0 ~a
  d = aten.neg.default(c) : f32[4][1]cuda:0
  output([b, d])
)");
  CHECK_EQ(AfterOf(plan), After{{}, {0}, {0, 1}, {2}});
}

TEST_CASE("side streams: one event to begin, one to fetch, memory goes when its stream knows") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4][1]cuda:0
  g = aten.neg.default(x) : f32[4][1]cuda:0 {forward stream=1}
  a = aten.relu.default(x) : f32[4][1]cuda:0
  b = aten.mul.Tensor(a, g) : f32[4][1]cuda:0
  h = aten.neg.default(a) : f32[4][1]cuda:0 {forward stream=1}
  c = aten.neg.default(b) : f32[4][1]cuda:0
  d = aten.add.Tensor(c, h) : f32[4][1]cuda:0
  output([d])
)");
  const DeviceSchedule schedule = ScheduleOnDevice(plan);
  CHECK_EQ(schedule.streams.waits, After{{}, {}, {0}, {1}, {}, {3}});
  CHECK_EQ(schedule.streams.forks, std::vector<int32_t>{0});
  CHECK_EQ(schedule.events, std::vector<int32_t>{0, 1, -1, 2, -1, -1});
  CHECK_EQ(schedule.start_event, 3);
  CHECK(schedule.streams.joins.empty());
  // g is stream 1's, which never hears that b has read it; a is stream 0's, read by h beside it.
  CHECK_EQ(ReleasesOf(plan, schedule), Lines{"4: b", "5: a c", "end: g h"});
}

TEST_CASE("one stream: tensors go with their last readers, and no event is recorded") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4][1]cuda:0
  a = aten.relu.default(x) : f32[4][1]cuda:0
  b = aten.neg.default(a) : f32[4][1]cuda:0
  output([b])
)");
  const DeviceSchedule schedule = ScheduleOnDevice(plan);
  CHECK_EQ(schedule.streams.num_events, 0);
  CHECK_EQ(schedule.start_event, -1);
  CHECK_EQ(ReleasesOf(plan, schedule), Lines{"1: a"});
}

}  // namespace
}  // namespace strata

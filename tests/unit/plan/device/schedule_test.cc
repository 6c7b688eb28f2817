#include "runtime/plan/device/schedule.h"

#include <algorithm>
#include <random>
#include <set>
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
  const auto add = [&](std::string line, const std::vector<SlotId>& slots) {
    for (const SlotId slot : slots)
      line += " " + plan.slots[slot].name;
    if (!slots.empty()) lines.push_back(line);
  };
  for (const StepId id : IdsOf(schedule.releases))
    add(std::to_string(id.index) + ":", schedule.releases[id]);
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
  CHECK_EQ(schedule.events.values(), std::vector<int32_t>{0, 1, -1, 2, -1, -1});
  CHECK_EQ(schedule.start_event, 3);
  CHECK(schedule.streams.joins.empty());
  // g is stream 1's, which never hears that b has read it; a is stream 0's, read by h beside it.
  CHECK_EQ(ReleasesOf(plan, schedule), Lines{"4: b", "5: a c", "end: g h"});
}

TEST_CASE("a collective begins where it is launched, beside what computes until its wait") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4][1]cuda:0
  g = _c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp') : f32[8][1]cuda:0
  a = aten.relu.default(x) : f32[4][1]cuda:0
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cuda:0 ~g
  b = aten.neg.default(w) : f32[8][1]cuda:0
  h = _c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp') : f32[8][1]cuda:0
  v = _c10d_functional.wait_tensor.default(h) : f32[8][1]cuda:0 ~h
  c = aten.add.Tensor(b, v) : f32[8][1]cuda:0
  output([a, c])
)");
  CHECK_EQ(plan.steps[StepId{0}].stream, kCommunicationStream);
  const DeviceSchedule schedule = ScheduleOnDevice(plan);
  CHECK_EQ(schedule.streams.waits, After{{}, {}, {0}, {}, {3}, {4}, {}});
  // What was gathered first goes when the second launch has waited for its reader.
  CHECK_EQ(ReleasesOf(plan, schedule), Lines{"4: g w", "6: b", "end: h v"});
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

/// A program of elementwise operators, views and writes in place, on three streams.
std::string RandomProgram(std::mt19937& random, int32_t num_steps) {
  std::string text = "  v0 = placeholder : f32[4][1]cuda:0\n";
  for (int32_t i = 1; i <= num_steps; ++i) {
    const auto operand = [&] { return "v" + std::to_string(random() % static_cast<size_t>(i)); };
    const std::string a = operand(), b = operand(), name = "  v" + std::to_string(i) + " = ";
    const std::string stream = " {forward stream=" + std::to_string(random() % 3) + "}\n";
    switch (random() % 4) {
      case 0:
        text += name + "aten.view.default(" + a + ", [4]) : f32[4][1]cuda:0 ~" + a + stream;
        break;
      case 1:
        text += name + "aten.add_.Tensor(" + a + ", " + b + ") : f32[4][1]cuda:0 ~" + a + stream;
        break;
      default:
        text += name + "aten.add.Tensor(" + a + ", " + b + ") : f32[4][1]cuda:0" + stream;
    }
  }
  return text + "  output([v" + std::to_string(num_steps) + "])\n";
}

TEST_CASE(
    "random programs: accesses to memory that conflict are ordered, and memory that goes back "
    "is not in use") {
  for (uint32_t seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Plan plan = LowerBody(RandomProgram(random, 25));
    const DeviceSchedule schedule = ScheduleOnDevice(plan);
    const std::vector<StreamStep> steps = StreamStepsOf(plan);
    // What is done before each step, by the order in its stream and its waits.
    std::vector<std::set<size_t>> done(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto learn = [&](size_t other) {
        done[i].insert(other);
        done[i].insert(done[other].begin(), done[other].end());
      };
      for (size_t j = 0; j < i; ++j) {
        if (steps[j].stream == steps[i].stream) learn(j);
      }
      for (const int32_t wait : schedule.streams.waits[i])
        learn(static_cast<size_t>(wait));
    }
    const std::vector<PlanStep>& planned = plan.steps.values();
    const auto storage_of = [&](SlotId slot) { return plan.slots[slot].storage; };
    const auto touched = [&](const PlanStep& step, bool writes) {
      std::set<SlotId> storages;
      if (step.is_view) return storages;
      for (const SlotId slot : step.results)
        if (slot.valid()) storages.insert(storage_of(slot));
      if (!writes) step.ForEachOperand([&](SlotId slot) { storages.insert(storage_of(slot)); });
      // A write without a user of its result is known by its first operand.
      if (step.mutates) storages.insert(storage_of(step.args[0].slot));
      return storages;
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto conflict = [&](bool first_writes) {
          const auto a = touched(planned[j], first_writes), b = touched(planned[i], !first_writes);
          return std::ranges::any_of(a, [&](SlotId storage) { return b.contains(storage); });
        };
        if (conflict(true) || conflict(false)) CHECK(done[i].contains(j));
      }
    }
    // A step that its stream runs after memory went back may get that memory: all uses are done.
    for (size_t at = 0; at < steps.size(); ++at) {
      for (const SlotId slot : schedule.releases.values()[at]) {
        const SlotId storage = storage_of(slot);
        size_t maker = steps.size();
        for (size_t use = steps.size(); use-- > 0;) {
          if (touched(planned[use], false).contains(storage)) maker = use;
        }
        if (maker == steps.size() || storage == SlotId{0}) continue;  // the input's is the caller's
        const bool lives_on = std::ranges::any_of(
            plan.outputs, [&](SlotId output) { return storage_of(output) == storage; });
        for (size_t next = at + 1; next < steps.size() && !lives_on; ++next) {
          if (planned[next].is_view || steps[next].stream != steps[maker].stream) continue;
          for (size_t use = 0; use <= at; ++use) {
            if (touched(planned[use], false).contains(storage)) CHECK(done[next].contains(use));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata

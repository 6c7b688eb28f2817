#include "cli/render/schedule/schedule_lanes.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "passes/pipeline/schedule/schedule_text.h"
#include "tests/support/graphs.h"

namespace strata::cli {
namespace {

using testing::OrDie;

/// Two ranks, one microbatch.
struct TwoRanks {
  PipelineSchedule schedule = OrDie(ParseScheduleCsv("0F0,0B0\n1F0,1B0\n", "two.csv"));
  Simulation times = Simulate(schedule, {.forward = 1.0, .backward = 2.0, .transfer = 0.5});

  TimedSchedule Timed(std::string_view title) const {
    return {std::string(title), schedule, times};
  }
};

size_t CountOf(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST_CASE("a lane shows each action of its rank where it ran") {
  const TwoRanks two;
  REQUIRE_EQ(two.times.makespan, 7.0);
  const std::string svg = ScheduleSvg({two.Timed("simulated")});
  // 944 pixels behind the ranks' names are 7 units of time.
  CHECK_EQ(1, CountOf(svg,
                      "<title>rank 0: 0F0, 0 to 1</title>"
                      "<rect x=\"56.0\" y=\"22.0\" width=\"134.9\" height=\"19.0\""));
  CHECK_EQ(1, CountOf(svg,
                      "<title>rank 1: 1F0, 1.5 to 2.5</title>"
                      "<rect x=\"258.3\" y=\"44.0\" width=\"134.9\" height=\"19.0\""));
  CHECK_EQ(1, CountOf(svg, "<title>rank 1: 1B0, 2.5 to 4.5</title>"));
  CHECK_EQ(1, CountOf(svg, "<title>rank 0: 0B0, 5 to 7</title>"));
  CHECK_EQ(1, CountOf(svg, ">simulated: time 7, bubble 57.1 %</text>"));
  CHECK_EQ(CountOf(svg, "<g>"), 4);
  CHECK_EQ(CountOf(svg, ">0F0</text>"), 1);
}

TEST_CASE("schedules below each other have one scale of time") {
  const TwoRanks two;
  const Simulation twice = Simulate(two.schedule, {.forward = 2.0, .backward = 4.0});
  REQUIRE_EQ(twice.makespan, 12.0);
  const std::string svg = ScheduleSvg({{"measured", two.schedule, twice}, two.Timed("simulated")});
  // 944 px for 12: the forwards of two units and of one.
  CHECK_EQ(1,
           CountOf(svg, "rank 0: 0F0, 0 to 2</title><rect x=\"56.0\" y=\"22.0\" width=\"157.3\""));
  CHECK_EQ(1,
           CountOf(svg, "rank 0: 0F0, 0 to 1</title><rect x=\"56.0\" y=\"110.0\" width=\"78.7\""));
}

TEST_CASE("an action that is short shows its microbatch, or nothing") {
  const PipelineSchedule schedule = OrDie(ParseScheduleCsv("0F0,0F1,0B0,0B1\n", "one.csv"));
  const Simulation times =
      Simulate(schedule, {.forward = 1.0, .backward = 100.0, .of_action = {{"0F", 3.0}}});
  REQUIRE_EQ(times.makespan, 206.0);
  const std::string svg = ScheduleSvg({{"simulated", schedule, times}});
  CHECK_EQ(CountOf(svg, ">0F0</text>"), 0);
  CHECK_EQ(CountOf(svg, ">1</text>"), 1);  // 13.7 px
  CHECK_EQ(CountOf(svg, ">0B1</text>"), 1);
}

TEST_CASE("a timeline has a process for each schedule, and a thread for each rank") {
  const TwoRanks two;
  CHECK_EQ(ScheduleTrace({two.Timed("simulated")}, 1000.0),
           R"({"traceEvents": [
  {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "simulated"}},
  {"name": "thread_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "rank 0"}},
  {"name": "thread_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "rank 1"}},
  {"name": "0F0", "ph": "X", "cat": "F", "pid": 0, "tid": 0, "ts": 0, "dur": 1000},
  {"name": "1F0", "ph": "X", "cat": "F", "pid": 0, "tid": 1, "ts": 1500, "dur": 1000},
  {"name": "1B0", "ph": "X", "cat": "B", "pid": 0, "tid": 1, "ts": 2500, "dur": 2000},
  {"name": "0B0", "ph": "X", "cat": "B", "pid": 0, "tid": 0, "ts": 5000, "dur": 2000}], "displayTimeUnit": "ms"}
)");
}

TEST_CASE("schedules are compared by time, bubble and how long ranks compute") {
  const TwoRanks two;
  CHECK_EQ(CompareSchedules({two.Timed("simulated")}),
           "                                  time    bubble  busy by rank\n"
           "simulated                            7    57.1 %  3 3\n");
}

}  // namespace
}  // namespace strata::cli

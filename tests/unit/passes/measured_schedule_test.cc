#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/measured.h"
#include "passes/pipeline/schedule/validation.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

/// What ranks would measure if each action took its time exactly.
std::vector<MeasuredAction> Executed(const PipelineSchedule& schedule, const ActionTimes& times) {
  PipelineSchedule lowered = schedule;
  const RankPrograms programs = OrDie(LowerSchedule(schedule));
  for (size_t rank = 0; rank < programs.size(); ++rank)
    lowered.ranks[rank].assign(programs[rank].begin(), programs[rank].end());
  const Simulation simulation = Simulate(lowered, times);
  REQUIRE(simulation.is_complete());
  std::vector<MeasuredAction> actions;
  for (const ActionSpan& span : simulation.spans) {
    actions.push_back({.rank = span.rank,
                       .action = *lowered.ranks[static_cast<size_t>(span.rank)][span.index],
                       .begin = 100.0 + span.begin,
                       .end = 100.0 + span.end});
  }
  return actions;
}

TEST_CASE("a measured step is simulated from the mean times of its actions") {
  for (const ScheduleKind& kind : ScheduleKinds()) {
    CAPTURE(kind.name);
    const PipelineSchedule schedule = OrDie(MakeSchedule(
        kind, {.ranks = 2, .stages_per_rank = kind.is_multi ? 2 : 1, .microbatches = 4}));
    // Stages of different times, in binary fractions: means are exact.
    ActionTimes times;
    times.stages = {1.0, 2.0, 0.5, 1.5};
    times.of_action["0UNSHARD"] = 0.25;
    times.of_action["1REDUCE_GRAD"] = 0.75;
    const std::vector<MeasuredAction> actions = Executed(schedule, times);
    const MeasuredSchedule measured = OrDie(ScheduleOfMeasured(actions));
    CHECK_OK(ValidateSchedule(measured.schedule));
    CHECK_EQ(measured.schedule.rank_of_stage, schedule.rank_of_stage);
    CHECK_EQ(measured.schedule.microbatches, 4);
    CHECK_EQ(measured.times.Of({.stage = 1, .type = ActionType::kForward, .microbatch = 3}), 2.0);
    CHECK_EQ(measured.times.Of({.stage = 0, .type = ActionType::kUnshard}), 0.25);
    CHECK_EQ(measured.times.transfer, 0.0);
    const Simulation again = Simulate(measured.schedule, measured.times);
    CHECK(again.is_complete());
    CHECK_EQ(again.makespan, measured.measured.makespan);
    CHECK_EQ(again.busy, measured.measured.busy);
    CHECK_EQ(again.peak_in_flight, measured.measured.peak_in_flight);
    CHECK_EQ(again.bubble(), measured.measured.bubble());
  }
}

TEST_CASE("the time of a transfer is what a reception lasts after the values were sent") {
  const auto at = [](int64_t rank, ActionType type, int64_t stage, double begin, double end) {
    return MeasuredAction{.rank = rank,
                          .action = {.stage = stage, .type = type, .microbatch = 0},
                          .begin = begin,
                          .end = end};
  };
  const MeasuredSchedule measured = OrDie(ScheduleOfMeasured(
      {at(0, ActionType::kForward, 0, 0, 4), at(0, ActionType::kSendForward, 0, 4, 4.5),
       at(1, ActionType::kReceiveForward, 1, 0, 5), at(1, ActionType::kForward, 1, 5, 6)}));
  CHECK_EQ(measured.times.transfer, 1.0);
  CHECK_EQ(measured.measured.busy, std::vector<double>{4.0, 1.0});
  CHECK_EQ(measured.measured.makespan, 6.0);
}

TEST_CASE("actions of a part of a pipeline are an error") {
  const auto forward = [](int64_t rank, int64_t stage) {
    return MeasuredAction{.rank = rank,
                          .action = {.stage = stage, .type = ActionType::kForward, .microbatch = 0},
                          .begin = 0,
                          .end = 1};
  };
  CHECK_EQ(MessageOf(ScheduleOfMeasured({})),
           "no measured actions: profile a step of a pipeline, as with strata train --profile 1");
  CHECK_EQ(MessageOf(ScheduleOfMeasured({forward(0, 0), forward(0, 2)})),
           "no action of stage 1: measured actions: profile a whole step");
  CHECK_EQ(MessageOf(ScheduleOfMeasured({forward(0, 0), forward(2, 1)})),
           "no action of rank 1: measured actions: profile a whole step");
}

}  // namespace
}  // namespace strata

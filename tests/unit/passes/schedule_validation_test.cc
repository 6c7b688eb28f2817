#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/schedule_text.h"
#include "passes/pipeline/schedule/search.h"
#include "passes/pipeline/schedule/simulation.h"
#include "passes/pipeline/schedule/validation.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

PipelineSchedule Make(std::string_view kind, int64_t ranks, int64_t microbatches) {
  const ScheduleKind found = OrDie(FindScheduleKind(kind));
  return OrDie(MakeSchedule(
      found,
      {.ranks = ranks, .stages_per_rank = found.is_multi ? 2 : 1, .microbatches = microbatches}));
}

PipelineSchedule Lowered(const PipelineSchedule& schedule) {
  PipelineSchedule lowered = schedule;
  const RankPrograms programs = OrDie(LowerSchedule(schedule));
  for (size_t rank = 0; rank < programs.size(); ++rank)
    lowered.ranks[rank].assign(programs[rank].begin(), programs[rank].end());
  return lowered;
}

std::string ValidationError(std::string_view csv, std::optional<int64_t> most = std::nullopt) {
  return MessageOf(ValidateSchedule(OrDie(ParseScheduleCsv(csv, "s.csv")), most));
}

/// Schedules of all kinds, as generated and lowered.
std::vector<PipelineSchedule> Examples() {
  std::vector<PipelineSchedule> examples;
  for (const ScheduleKind& kind : ScheduleKinds()) {
    for (const int64_t ranks : {2, 4}) {
      examples.push_back(Make(kind.name, ranks, 8));
      examples.push_back(Lowered(examples.back()));
    }
  }
  return examples;
}

TEST_CASE("every generated schedule is valid, and runs in the simulator") {
  for (const PipelineSchedule& schedule : Examples()) {
    CHECK_OK(ValidateSchedule(schedule));
    const Simulation simulation = Simulate(schedule);
    CHECK(simulation.is_complete());
    const int64_t most = *std::ranges::max_element(simulation.peak_in_flight);
    CHECK_OK(ValidateSchedule(schedule, most));
    CHECK(!ValidateSchedule(schedule, most - 1));
  }
}

/// Changes one thing at random.
PipelineSchedule Mutated(const PipelineSchedule& schedule, std::mt19937& random) {
  PipelineSchedule mutated = schedule;
  const auto number = [&](size_t bound) { return random() % bound; };
  auto& actions = mutated.ranks[number(mutated.ranks.size())];
  const size_t first = number(actions.size()), second = number(actions.size());
  switch (number(5)) {
    case 0:
      std::swap(actions[first], actions[second]);
      break;
    case 1:
      actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(first));
      break;
    case 2:
      actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(first), actions[second]);
      break;
    case 3:
      if (actions[first] && actions[first]->microbatch >= 0) {
        actions[first]->microbatch = static_cast<int64_t>(number(8));
      }
      break;
    default:
      std::rotate(actions.begin() + static_cast<std::ptrdiff_t>(std::min(first, second)),
                  actions.begin() + static_cast<std::ptrdiff_t>(std::max(first, second)),
                  actions.end());
      break;
  }
  return mutated;
}

TEST_CASE("of 500 mutated schedules the validator accepts those that the simulator completes") {
  const std::vector<PipelineSchedule> examples = Examples();
  std::mt19937 random(7);
  int valid = 0, broken = 0;
  for (int i = 0; i < 500; ++i) {
    const PipelineSchedule mutated =
        Mutated(examples[static_cast<size_t>(i) % examples.size()], random);
    const Simulation simulation = Simulate(mutated);
    CAPTURE(ScheduleCsv(mutated));
    CAPTURE(simulation.deadlock.value_or(""));
    CAPTURE(simulation.lost.value_or(""));
    CHECK_EQ(ValidateSchedule(mutated).has_value(), simulation.is_complete());
    ++(simulation.is_complete() ? valid : broken);
  }
  // Both happen often enough to mean something.
  CHECK_GT(valid, 50);
  CHECK_GT(broken, 200);
}

TEST_CASE("an invalid schedule is refused with the rank and the action that break it") {
  CHECK_EQ(ValidationError("0F0,0B0\n1B0,1F0\n"),
           "the schedule deadlocks: rank 0: action 1, 0B0 waits for 1B0; rank 1: action 0, 1B0 "
           "waits for 1F0");
  CHECK_EQ(ValidationError("0F1,0F0,0B0,0B1\n1F0,1B0,1F1\n"), "rank 1: 1B1 is missing");
  CHECK_EQ(ValidationError("0F0,0I0\n"), "rank 0: 0W0 is missing");
  CHECK_EQ(ValidationError("0F0,0B0,0B0\n"), "rank 0: action 2, 0B0: it runs before, as action 1");
  CHECK_EQ(ValidationError("0F0,0B0,0W0\n"),
           "rank 0: action 2, 0W0: the gradient is computed twice, by 0B0 too");
  CHECK_EQ(ValidationError("0F0,0F1,0B0,0B1\n", 1),
           "rank 0: action 1, 0F1: 2 microbatches are in flight, the limit is 1");
  CHECK_EQ(ValidationError("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
           "rank 1: 1RECV_F0 is missing");
  CHECK_EQ(ValidationError("0B0,0F0\n1F0,1B0\n"),
           "the schedule deadlocks: rank 0: action 0, 0B0 waits for 1B0; rank 1: action 0, 1F0 "
           "waits for 0F0");
}

TEST_CASE("bubble and peak of activations are those of theory") {
  for (const int64_t p : {2, 4, 8}) {
    for (const int64_t m : {8, 16}) {
      CAPTURE(p);
      CAPTURE(m);
      const double ratio = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
      const Simulation gpipe = Simulate(Make("GPipe", p, m));
      CHECK_EQ(gpipe.bubble(), doctest::Approx(ratio));
      CHECK_EQ(gpipe.peak_in_flight, std::vector<int64_t>(static_cast<size_t>(p), m));
      const Simulation one = Simulate(Make("1F1B", p, m));
      CHECK_EQ(one.bubble(), doctest::Approx(ratio));
      for (int64_t rank = 0; rank < p; ++rank)
        CHECK_EQ(one.peak_in_flight[static_cast<size_t>(rank)], std::min(m, p - rank));
      // Two stages per rank, each of half the time: half the bubble.
      const Simulation interleaved = Simulate(Make("Interleaved1F1B", p, m));
      CHECK_EQ(interleaved.bubble(),
               doctest::Approx(static_cast<double>(p - 1) / static_cast<double>(2 * m + p - 1)));
      CHECK_EQ(interleaved.peak_in_flight[0], std::min(2 * m, 3 * p - 1));
      CHECK_EQ(Simulate(Make("LoopedBFS", p, m)).bubble(), interleaved.bubble());
      CHECK_EQ(Simulate(Make("LoopedBFS", p, m)).peak_in_flight[0], 2 * m);
      // F, I and W of equal time: idle are only the first forwards.
      const auto q = static_cast<double>(p - 1), work = static_cast<double>(6 * 2 * m);
      for (const char* kind : {"InterleavedZeroBubble", "ZBVZeroBubble"}) {
        const Simulation filled = Simulate(Make(kind, p, 2 * m));
        CHECK_EQ(filled.bubble(), doctest::Approx(q / (work + q)));
        CHECK_EQ(filled.peak_in_flight, std::vector<int64_t>(static_cast<size_t>(p), 2 * p));
      }
      const Simulation dual = Simulate(Make("DualPipeV", p, 2 * m));
      CHECK_EQ(dual.bubble(), doctest::Approx(2.0 * q / (work + 2.0 * q)));
      CHECK_EQ(dual.peak_in_flight, std::vector<int64_t>(static_cast<size_t>(p), 2 * p + 1));
    }
  }
}

TEST_CASE("the search finds at least the best generated schedule that fits into memory") {
  for (const int64_t ranks : {2, 4}) {
    for (const int64_t memory : {1, 2, 4, 8}) {
      for (const double weight : {0.5, 1.0}) {
        CAPTURE(ranks);
        CAPTURE(memory);
        const ScheduleSearch search = {.ranks = ranks,
                                       .microbatches = 8,
                                       .times = {.weight = weight, .transfer = 0.25},
                                       .memory = memory};
        const std::vector<FoundSchedule> found = OrDie(SearchSchedules(search));
        for (const FoundSchedule& schedule : found) {
          const int64_t stages = schedule.schedule.num_stages() / ranks;
          CHECK_OK(ValidateSchedule(schedule.schedule, memory * stages));
          CHECK_GE(schedule.simulation.makespan, found.front().simulation.makespan);
        }
        for (const ScheduleKind& kind : ScheduleKinds()) {
          const PipelineSchedule made = Make(kind.name, ranks, 8);
          const int64_t per_rank = kind.is_multi ? 2 : 1;
          if (!ValidateSchedule(made, memory * per_rank)) continue;
          const Simulation simulation = Simulate(made, TimesOfStage(search.times, per_rank));
          CHECK_LE(found.front().simulation.makespan, simulation.makespan);
        }
      }
    }
  }
}

TEST_CASE("a schedule is read as it was written, with idle slots") {
  for (const PipelineSchedule& schedule : Examples()) {
    const PipelineSchedule read = OrDie(ParseScheduleCsv(ScheduleCsv(schedule), "s.csv"));
    CHECK_EQ(read.microbatches, schedule.microbatches);
    CHECK_EQ(read.rank_of_stage, schedule.rank_of_stage);
    CHECK_EQ(read.ranks, schedule.ranks);
  }
  const PipelineSchedule edited = OrDie(ParseScheduleCsv(" 0F0 , ,0B0\r\n,1F0,1B0\r\n", "s.csv"));
  CHECK_EQ(ScheduleCsv(edited), "0F0,,0B0\n,1F0,1B0\n");
}

TEST_CASE("an error in a schedule file shows file, line and column") {
  const auto error = [](std::string_view csv) { return MessageOf(ParseScheduleCsv(csv, "s.csv")); };
  CHECK_EQ(error("0F0,0B0\n1F0,1X0\n"),
           "s.csv:2:5: '1X0' is not an action: write a stage, F, B, I, W, UNSHARD, RESHARD, "
           "REDUCE_GRAD, SEND_F, RECV_F, SEND_B or RECV_B, and a microbatch, as in 2F0\n"
           "  1F0,1X0\n"
           "      ^");
  CHECK_EQ(error("0F0,0B\n"), "s.csv:1:5: '0B' has no microbatch: write 0B0\n  0F0,0B\n      ^");
  CHECK_EQ(error("0F0,0B0\n0F1\n"), "s.csv:2:1: stage 0 is on rank 0 and on rank 1\n  0F1\n  ^");
  CHECK_EQ(error("0F0,0B0\n2F0,2B0\n"),
           "s.csv:2:1: stage 2 has actions, stage 1 has none\n  2F0,2B0\n  ^");
  CHECK_EQ(error(""),
           "s.csv:1:1: a schedule without actions: write F and B of each stage\n  \n  ^");
  CHECK_EQ(error("(0B0;0F1)OVERLAP_F_B"),
           "s.csv:1:1: first sub-action must be F: '(0B0;0F1)OVERLAP_F_B': write "
           "(0F3;3B1)OVERLAP_F_B\n  (0B0;0F1)OVERLAP_F_B\n  ^");
}

TEST_CASE("GR-15: an overlap with I is refused") {
  CHECK_EQ(MessageOf(ParseAction("(0F1;0I0)OVERLAP_F_B")),
           "BACKWARD_INPUT is not implemented in an overlap: '(0F1;0I0)OVERLAP_F_B': take B");
}

}  // namespace
}  // namespace strata

#include "passes/pipeline/schedule/schedule.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/simulation.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

PipelineSchedule Make(std::string_view kind, int64_t ranks, int64_t per_rank,
                      int64_t microbatches) {
  return OrDie(
      MakeSchedule(OrDie(FindScheduleKind(kind)),
                   {.ranks = ranks, .stages_per_rank = per_rank, .microbatches = microbatches}));
}

std::string ErrorOf(std::string_view kind, int64_t ranks, int64_t per_rank, int64_t microbatches) {
  return MessageOf(
      MakeSchedule(OrDie(FindScheduleKind(kind)),
                   {.ranks = ranks, .stages_per_rank = per_rank, .microbatches = microbatches}));
}

/// Without idle slots, a line per rank; overlaps as `(0F3;3B1)OVL`.
std::string TextOf(const PipelineSchedule& schedule, std::string_view overlap = "OVL") {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    std::string line;
    for (const std::optional<Action>& action : actions) {
      if (!action) continue;
      std::string word = ToString(*action);
      if (const size_t end = word.find(')'); end != std::string::npos)
        word = word.substr(0, end + 1) + std::string(overlap);
      line += (line.empty() ? "" : " ") + word;
    }
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

std::string TextOf(const std::vector<Action>& program) {
  std::string line;
  for (const Action& action : program) {
    std::string word = ToString(action);
    if (const size_t end = word.find(')'); end != std::string::npos)
      word = word.substr(0, end + 1) + "OVL";
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

uint64_t Digest(std::string_view text) {
  uint64_t value = 0xCBF29CE484222325U;
  for (const char c : text)
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return value;
}

TEST_CASE("GR-26: schedules of two ranks are the golden vectors") {
  CHECK_EQ(TextOf(Make("GPipe", 2, 1, 2)), "0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1");
  CHECK_EQ(TextOf(Make("1F1B", 2, 1, 4)),
           "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n"
           "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3");
  CHECK_EQ(TextOf(Make("Interleaved1F1B", 2, 2, 4)),
           "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
           "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
  CHECK_EQ(TextOf(Make("ZBVZeroBubble", 2, 2, 4)),
           "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 "
           "0W2 0I3 0W3\n"
           "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 "
           "1W2 2W3 1W3");
  CHECK_EQ(TextOf(Make("DualPipeV", 2, 2, 4)),
           "0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1)OVL (3F2;0B0)OVL 3B2 (3F3;0B1)OVL 3B3 0I2 0W2 "
           "0I3 0W3\n"
           "1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0)OVL (1F3;2B1)OVL (2F3;1B1)OVL 2B2 1B2 2I3 1I3 2W3 "
           "1W3");
}

TEST_CASE("GR-26: schedules of four ranks are the golden vectors") {
  const std::string zbv = TextOf(Make("ZBVZeroBubble", 4, 2, 8));
  CHECK_EQ(zbv.substr(0, zbv.find('\n')),
           "0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 7I3 7W3 0F7 0I0 "
           "0W0 7F4 7I4 7W4 0I1 0W1 7F5 7I5 7W5 0I2 0W2 7F6 7I6 7W6 0I3 0W3 7F7 7I7 7W7 0I4 0W4 "
           "0I5 0W5 0I6 0W6 0I7 0W7");
  CHECK_EQ(zbv.substr(zbv.rfind('\n') + 1),
           "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4I0 4W0 3F4 3I0 3W0 4F4 4I1 4W1 3F5 3I1 3W1 4F5 4I2 "
           "4W2 3F6 3I2 3W2 4F6 4I3 4W3 3F7 3I3 3W3 4F7 4I4 4W4 3I4 4I5 3I5 4I6 3I6 4I7 3I7 3W4 "
           "4W5 4W6 4W7 3W5 3W6 3W7");
  const std::string dual = TextOf(Make("DualPipeV", 4, 2, 8), "");
  CHECK_EQ(
      dual.substr(0, dual.find('\n')),
      "0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 (0F7;7B3) (7F4;0B0) "
      "7B4 (7F5;0B1) 7B5 (7F6;0B2) 7B6 (7F7;0B3) 7B7 0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7");
  CHECK_EQ(dual.substr(dual.rfind('\n') + 1),
           "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 3F4 4B0 (4F4;3B0) (3F5;4B1) (4F5;3B1) (3F6;4B2) "
           "(4F6;3B2) (3F7;4B3) (4F7;3B3) 4B4 3B4 4B5 3B5 4I6 3I6 4I7 3I7 4W6 3W6 4W7 3W7");
}

TEST_CASE("GR-26: schedules are those of torch.distributed.pipelining, action by action") {
  const auto text = ReadFile("tests/data/pipeline/torch_schedules.txt");
  REQUIRE_OK(text);
  std::istringstream lines(*text);
  std::string kind, digest;
  int64_t ranks = 0, per_rank = 0, microbatches = 0, compared = 0;
  while (lines >> kind >> ranks >> per_rank >> microbatches >> digest) {
    CAPTURE(kind);
    CAPTURE(ranks);
    CAPTURE(per_rank);
    CAPTURE(microbatches);
    PipelineSchedule schedule = Make(kind, ranks, per_rank, microbatches);
    if (kind == "1F1B") schedule.ranks.pop_back();  // see torch_schedules.py
    CHECK_EQ(fmt::format("{:016x}", Digest(TextOf(schedule, "OVERLAP_F_B"))), digest);
    ++compared;
  }
  CHECK_EQ(compared, 828);
}

TEST_CASE("GR-26: lowered schedules are the golden vectors") {
  CHECK_EQ(TextOf(OrDie(LowerSchedule(Make("ZBVZeroBubble", 2, 2, 4)))[1]),
           "1UNSHARD 2UNSHARD 1RECV_F0 1F0 1RECV_F1 2F0 2SEND_F0 1RECV_F2 1F1 2F1 2SEND_F1 "
           "2RECV_B0 2I0 2W0 1F2 2RECV_B1 1I0 1SEND_B0 1W0 1RECV_F3 2F2 2SEND_F2 2I1 2W1 1F3 "
           "2RECV_B2 1I1 1SEND_B1 1W1 2F3 2SEND_F3 2I2 2W2 2RECV_B3 1I2 1SEND_B2 2I3 1I3 1SEND_B3 "
           "1W2 2W3 2REDUCE_GRAD 2RESHARD 1W3 1REDUCE_GRAD 1RESHARD");
  CHECK_EQ(TextOf(OrDie(LowerSchedule(Make("DualPipeV", 2, 2, 4)))[1]),
           "1UNSHARD 2UNSHARD 1RECV_F0 1F0 1RECV_F1 2F0 2SEND_F0 1RECV_F2 1F1 2F1 2SEND_F1 "
           "2RECV_B0 1F2 2B0 (2F2;1B0)OVL 2SEND_F2 1SEND_B0 1RECV_F3 2RECV_B1 (1F3;2B1)OVL "
           "(2F3;1B1)OVL 2SEND_F3 1SEND_B1 2RECV_B2 2B2 1B2 1SEND_B2 2RECV_B3 2I3 1I3 1SEND_B3 2W3 "
           "2REDUCE_GRAD 2RESHARD 1W3 1REDUCE_GRAD 1RESHARD");
  CHECK_EQ(TextOf(OrDie(LowerSchedule(Make("Interleaved1F1B", 2, 2, 4)))[0]),
           "0UNSHARD 2UNSHARD 0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 2F0 2SEND_F0 2F1 "
           "2SEND_F1 2RECV_B0 0F2 0SEND_F2 2B0 2SEND_B0 2RECV_B1 0F3 0SEND_F3 2RECV_F2 2B1 "
           "2SEND_B1 0RECV_B0 2F2 2SEND_F2 2RECV_F3 0B0 0RECV_B1 2F3 2SEND_F3 0B1 2RECV_B2 2B2 "
           "2SEND_B2 2RECV_B3 2B3 2SEND_B3 2REDUCE_GRAD 2RESHARD 0RECV_B2 0B2 0RECV_B3 0B3 "
           "0REDUCE_GRAD 0RESHARD");
}

TEST_CASE("a rank receives right before it reads what it received") {
  for (const ScheduleKind& kind : ScheduleKinds()) {
    CAPTURE(kind.name);
    const RankPrograms lowered = OrDie(LowerSchedule(Make(kind.name, 4, kind.is_multi ? 2 : 1, 8)));
    RankPrograms delayed = lowered;
    DelayReceptions(delayed);
    const auto is_reception = [](const Action& action) {
      return action.type == ActionType::kReceiveForward ||
             action.type == ActionType::kReceiveBackward;
    };
    const auto sorted = [](std::vector<Action> actions) {
      std::ranges::sort(actions, {}, [](const Action& action) { return ToString(action); });
      return actions;
    };
    for (size_t rank = 0; rank < lowered.size(); ++rank) {
      CHECK_EQ(sorted(delayed[rank]), sorted(lowered[rank]));
      std::vector<Action> before = lowered[rank], after = delayed[rank];
      std::erase_if(before, is_reception);
      std::erase_if(after, is_reception);
      CHECK_EQ(before, after);
      for (size_t i = 0; i < delayed[rank].size(); ++i) {
        const Action& reception = delayed[rank][i];
        if (!is_reception(reception)) continue;
        // Behind it are at most other receptions of the same action.
        size_t reader = i + 1;
        while (is_reception(delayed[rank][reader]))
          ++reader;
        bool reads = false;
        ForEachPart(delayed[rank][reader], [&](const Action& part) {
          reads |= part.stage == reception.stage && part.microbatch == reception.microbatch;
        });
        CHECK(reads);
      }
    }
    // No rank waits for what comes later: what runs takes as long as without communication.
    PipelineSchedule schedule = Make(kind.name, 4, kind.is_multi ? 2 : 1, 8);
    const double makespan = Simulate(schedule).makespan;
    for (size_t rank = 0; rank < delayed.size(); ++rank)
      schedule.ranks[rank].assign(delayed[rank].begin(), delayed[rank].end());
    CHECK_EQ(Simulate(schedule).makespan, doctest::Approx(makespan));
  }
}

TEST_CASE("a schedule in which actions wait for each other cannot be lowered") {
  PipelineSchedule schedule = Make("GPipe", 2, 1, 1);
  std::swap(schedule.ranks[0][0], schedule.ranks[0].back());
  CHECK_EQ(MessageOf(LowerSchedule(schedule)),
           "the schedule deadlocks: rank 0: 0B0 waits for 1B0; rank 1: 1F0 waits for 0F0: move or "
           "add what is waited for");
}

TEST_CASE("a schedule that sends is not lowered again") {
  PipelineSchedule schedule = Make("1F1B", 2, 1, 2);
  const RankPrograms programs = OrDie(LowerSchedule(schedule));
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    schedule.ranks[rank].assign(programs[rank].begin(), programs[rank].end());
    schedule.ranks[rank].insert(schedule.ranks[rank].begin(), std::nullopt);
  }
  CHECK_EQ(OrDie(LowerSchedule(schedule)), programs);
}

TEST_CASE("sizes that a kind cannot have are errors") {
  CHECK_EQ(MessageOf(FindScheduleKind("Interleaved1FB1")),
           "no pipeline schedule 'Interleaved1FB1': take one of GPipe, 1F1B, LoopedBFS, "
           "Interleaved1F1B, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV, did you mean "
           "'Interleaved1F1B'");
  CHECK_EQ(OrDie(FindScheduleKind("gpipe")).name, "GPipe");
  CHECK_EQ(ErrorOf("1F1B", 4, 1, 3), "1F1B: 3 microbatches on 4 ranks: take at least 4");
  CHECK_EQ(ErrorOf("DualPipeV", 2, 2, 3), "DualPipeV: 3 microbatches on 2 ranks: take at least 4");
  CHECK_EQ(ErrorOf("Interleaved1F1B", 2, 2, 5),
           "Interleaved1F1B: 5 microbatches on 2 ranks: take a multiple of the 2 rounds");
  CHECK_EQ(ErrorOf("GPipe", 2, 2, 4),
           "GPipe: 2 ranks, 2 stages per rank, 4 microbatches: a rank has one stage");
  CHECK_EQ(ErrorOf("ZBVZeroBubble", 2, 3, 4),
           "ZBVZeroBubble: 2 ranks, 3 stages per rank, 4 microbatches: a rank has two stages");
  CHECK_EQ(ErrorOf("LoopedBFS", 0, 2, 4),
           "LoopedBFS: 0 ranks, 2 stages per rank, 4 microbatches: take at least 1 of each");
}

}  // namespace
}  // namespace strata

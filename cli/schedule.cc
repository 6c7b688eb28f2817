#include "passes/pipeline/schedule/schedule.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/render/schedule_text.h"
#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/schedule_text.h"
#include "passes/pipeline/schedule/search.h"
#include "passes/pipeline/schedule/simulation.h"
#include "passes/pipeline/schedule/validation.h"

namespace strata::cli {
namespace {

struct ScheduleFlags {
  std::string schedule, format = "lanes", times = "1,2,1,1,0";
  int64_t ranks = 2, microbatches = 4, stages_per_rank = 0, memory = 0, top = 5;
  bool search = false;
};

Result<bool> ParseFlags(Args args, ScheduleFlags& out) {
  Flags flags("schedule",
              "prints, validates, simulates and searches schedules of pipeline parallelism");
  flags.OptionalPositional("SCHEDULE", &out.schedule,
                           "GPipe, 1F1B, LoopedBFS, Interleaved1F1B, InterleavedZeroBubble, "
                           "ZBVZeroBubble, DualPipeV, or a file FILE.csv");
  flags.Option("--ranks", "P", &out.ranks, "ranks of the pipeline", 1, 4096);
  flags.Option("--microbatches", "M", &out.microbatches, "microbatches of a step", 1, 65'535);
  flags.Option("--stages-per-rank", "L", &out.stages_per_rank,
               "stages of a rank; 0: those of the schedule; with --search: at most", 0, 64);
  flags.Choice("--format", &out.format, {"lanes", "csv", "actions", "json"},
               "simulated ranks over time, the file to edit, actions that run, or spans");
  flags.Option("--times", "F,B,I,W,T", &out.times,
               "times of forward, backward, its two halves, and a transfer");
  flags.Option("--memory", "N", &out.memory,
               "microbatches whose activations a rank can hold; 0: all", 0, 65'535);
  flags.Switch("--search", &out.search, "find the fastest schedule that fits into memory");
  flags.Option("--top", "N", &out.top, "with --search: schedules to list; 0: all");
  flags.Example("strata schedule Interleaved1F1B --ranks 4 --microbatches 8");
  flags.Example("strata schedule mine.csv --format actions");
  flags.Example("strata schedule --search --ranks 4 --microbatches 8 --memory 4");
  return flags.Parse(args);
}

Result<ActionTimes> ParseTimes(std::string_view text) {
  std::vector<double> values;
  for (std::string_view rest = text; values.size() < 6;) {
    const size_t end = std::min(rest.find(','), rest.size());
    double value = 0.0;
    const auto [stop, problem] = std::from_chars(rest.data(), rest.data() + end, value);
    if (problem != std::errc() || stop != rest.data() + end || !(value >= 0.0)) break;
    values.push_back(value);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (values.size() != 5)
    return Error("not times: --times '{}': write five numbers, as in 1,2,1,1,0", text);
  return ActionTimes{.forward = values[0],
                     .backward = values[1],
                     .input = values[2],
                     .weight = values[3],
                     .transfer = values[4]};
}

Result<PipelineSchedule> Load(const ScheduleFlags& flags) {
  if (flags.schedule.empty())
    return Error("no schedule: give the name of one, a file, or --search");
  if (flags.schedule.ends_with(".csv")) {
    STRATA_TRY(const std::string text, ReadFile(flags.schedule));
    return ParseScheduleCsv(text, flags.schedule);
  }
  STRATA_TRY(const ScheduleKind kind, FindScheduleKind(flags.schedule));
  const int64_t usual = kind.is_multi ? 2 : 1;
  return MakeSchedule(
      kind, {.ranks = flags.ranks,
             .stages_per_rank = flags.stages_per_rank == 0 ? usual : flags.stages_per_rank,
             .microbatches = flags.microbatches});
}

Result<std::string> Print(const PipelineSchedule& schedule, const ScheduleFlags& flags,
                          const ActionTimes& times) {
  if (flags.format == "csv") return ScheduleCsv(schedule);
  if (flags.format == "actions") {
    if (HasCommunication(schedule)) return ActionLists(schedule);
    STRATA_TRY(const RankPrograms programs, LowerSchedule(schedule));
    PipelineSchedule lowered = schedule;
    for (size_t rank = 0; rank < programs.size(); ++rank)
      lowered.ranks[rank].assign(programs[rank].begin(), programs[rank].end());
    return ActionLists(lowered);
  }
  const int64_t per_rank = schedule.num_stages() / schedule.num_ranks();
  const Simulation simulation =
      Simulate(schedule, TimesOfStage(times, std::max<int64_t>(per_rank, 1)));
  return flags.format == "json" ? ScheduleJson(schedule, simulation)
                                : ScheduleLanes(schedule, simulation);
}

Result<std::string> Search(const ScheduleFlags& flags, const ActionTimes& times) {
  ScheduleSearch search = {.ranks = flags.ranks,
                           .microbatches = flags.microbatches,
                           .times = times,
                           .memory = std::nullopt};
  if (flags.stages_per_rank > 0) search.most_stages_per_rank = flags.stages_per_rank;
  if (flags.memory > 0) search.memory = flags.memory;
  STRATA_TRY(const std::vector<FoundSchedule> found, SearchSchedules(search));
  const PipelineSchedule& best = found.front().schedule;
  if (flags.format != "lanes") return Print(best, flags, times);
  return FoundSchedulesText(found, static_cast<size_t>(flags.top)) + "\n" +
         ScheduleLanes(best, found.front().simulation);
}

}  // namespace

Result<Exit> RunSchedule(Args args) {
  ScheduleFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const ActionTimes times, ParseTimes(flags.times));
  std::string text;
  if (flags.search) {
    STRATA_TRY(text, Search(flags, times));
  } else {
    STRATA_TRY(const PipelineSchedule schedule, Load(flags));
    // A rank holds whole microbatches in parts, of each of its stages.
    const int64_t per_rank = schedule.num_stages() / schedule.num_ranks();
    const auto most = flags.memory > 0 ? std::optional(flags.memory * per_rank) : std::nullopt;
    if (auto valid = ValidateSchedule(schedule, most); !valid)
      return std::move(valid).error().In(flags.schedule);
    STRATA_TRY(text, Print(schedule, flags, times));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli

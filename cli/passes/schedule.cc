#include "passes/pipeline/schedule/schedule.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/schedule/schedule_lanes.h"
#include "cli/render/schedule/schedule_text.h"
#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/schedule_text.h"
#include "passes/pipeline/schedule/search.h"
#include "passes/pipeline/schedule/simulation.h"
#include "passes/pipeline/schedule/validation.h"
#include "refs/pipeline_actions.h"
#include "store/trace.h"

namespace strata::cli {
namespace {

struct ScheduleFlags {
  std::string schedule, format = "csv", times = "1,2,1,1,0", check, timeline;
  int64_t ranks = 2, microbatches = 4, stages = 0, stages_per_rank = 0, memory = 0, top = 5;
  bool search = false, has_format = false;
};

Result<bool> ParseFlags(Args args, ScheduleFlags& out) {
  Flags flags("schedule",
              "prints, validates, simulates and searches schedules of pipeline parallelism, and "
              "shows measured ones");
  flags.OptionalPositional("SCHEDULE", &out.schedule,
                           "GPipe, 1F1B, LoopedBFS, Interleaved1F1B, InterleavedZeroBubble, "
                           "ZBVZeroBubble, DualPipeV, a file FILE.csv, or a trace of a training "
                           "that was profiled");
  flags.Option("--ranks", "P", &out.ranks, "ranks of the pipeline", 1, 4096);
  flags.Option("--microbatches", "M", &out.microbatches, "microbatches of a step", 1, 65'535);
  flags.Option("--stages", "S", &out.stages, "stages of all ranks; 0: those of the schedule", 0,
               262'144);
  flags.Option("--stages-per-rank", "L", &out.stages_per_rank,
               "instead: stages of a rank; with --search: at most", 0, 64);
  flags.Choice(
      "--format", &out.format, {"csv", "lanes", "svg", "actions", "json"},
      "the file to edit, simulated ranks over time (with --search the default) as text or as "
      "a picture, actions that run, or spans");
  flags.Option("--timeline", "FILE", &out.timeline,
               "also write what each rank does, for ui.perfetto.dev");
  flags.Option("--check", "FILE", &out.check,
               "whether a schedule file runs to its end; exit 1: not, prints what cannot run");
  flags.Option("--times", "F,B,I,W,T", &out.times,
               "times of forward, backward, its two halves, and a transfer");
  flags.Option("--memory", "N", &out.memory,
               "microbatches whose activations a rank can hold; 0: all", 0, 65'535);
  flags.Switch("--search", &out.search, "find the fastest schedule that fits into memory");
  flags.Option("--top", "N", &out.top, "with --search: schedules to list; 0: all");
  flags.Example("strata schedule Interleaved1F1B --stages 8 --ranks 4 --microbatches 8");
  flags.Example("strata schedule 1F1B --ranks 4 --microbatches 8 --format lanes");
  flags.Example("strata schedule --check mine.csv");
  flags.Example("strata schedule run.strata --format svg > lanes.svg");
  flags.Example("strata schedule --search --ranks 4 --microbatches 8 --memory 4");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  out.has_format = std::ranges::any_of(
      args, [](const std::string& word) { return word.starts_with("--format"); });
  if (out.search && !out.has_format) out.format = "lanes";
  return go_on;
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

Result<PipelineSchedule> ReadSchedule(const std::string& path) {
  STRATA_TRY(const std::string text, ReadFile(path));
  return ParseScheduleCsv(text, path);
}

Result<int64_t> StagesPerRank(const ScheduleFlags& flags, const ScheduleKind& kind) {
  if (flags.stages == 0 && flags.stages_per_rank == 0) return kind.is_multi ? 2 : 1;
  if (flags.stages == 0) return flags.stages_per_rank;
  if (flags.stages_per_rank > 0)
    return Error("two numbers of stages: --stages, --stages-per-rank: give one of them");
  if (flags.stages % flags.ranks == 0) return flags.stages / flags.ranks;
  return Error("{} stages on {} ranks: --stages: give a multiple of --ranks", flags.stages,
               flags.ranks);
}

Result<PipelineSchedule> Load(const ScheduleFlags& flags) {
  if (flags.schedule.empty())
    return Error("no schedule: give the name of one, a file, or --search");
  if (flags.schedule.ends_with(".csv")) return ReadSchedule(flags.schedule);
  if (flags.schedule.find_first_of("./") != std::string::npos) {
    STRATA_TRY([[maybe_unused]] const MappedFile file, MappedFile::Open(flags.schedule));
    return Error("no schedule: {}: give FILE.csv, or a trace of a training that was profiled",
                 flags.schedule);
  }
  STRATA_TRY(const ScheduleKind kind, FindScheduleKind(flags.schedule));
  STRATA_TRY(const int64_t stages_per_rank, StagesPerRank(flags, kind));
  return MakeSchedule(kind, {.ranks = flags.ranks,
                             .stages_per_rank = stages_per_rank,
                             .microbatches = flags.microbatches});
}

Status Validate(const PipelineSchedule& schedule, const ScheduleFlags& flags) {
  // A rank holds whole microbatches in parts, of each of its stages.
  const int64_t per_rank = schedule.num_stages() / schedule.num_ranks();
  return ValidateSchedule(schedule,
                          flags.memory > 0 ? std::optional(flags.memory * per_rank) : std::nullopt);
}

Result<Exit> Check(const ScheduleFlags& flags) {
  if (flags.search || !flags.schedule.empty())
    return Error("--check reads one file: give no other schedule, and no --search");
  STRATA_TRY(const PipelineSchedule schedule, ReadSchedule(flags.check));
  const Status valid = Validate(schedule, flags);
  if (valid) return Exit::kOk;
  STRATA_RETURN_IF_ERROR(
      WriteFile("-", fmt::format("{}: {}\n", flags.check, valid.error().message())));
  return Exit::kDifferences;
}

Simulation SimulateWith(const PipelineSchedule& schedule, const ActionTimes& times) {
  const int64_t per_rank = schedule.num_stages() / schedule.num_ranks();
  return Simulate(schedule, TimesOfStage(times, std::max<int64_t>(per_rank, 1)));
}

Result<std::string> Print(const PipelineSchedule& schedule, const ScheduleFlags& flags,
                          const ActionTimes& times) {
  if (flags.format == "csv") return ScheduleCsv(schedule);
  if (flags.format == "actions") {
    if (HasCommunication(schedule)) return ActionLists(schedule);
    STRATA_TRY(RankPrograms programs, LowerSchedule(schedule));
    DelayReceptions(programs);
    PipelineSchedule lowered = schedule;
    for (size_t rank = 0; rank < programs.size(); ++rank)
      lowered.ranks[rank].assign(programs[rank].begin(), programs[rank].end());
    return ActionLists(lowered);
  }
  const Simulation simulation = SimulateWith(schedule, times);
  if (flags.format == "svg") return ScheduleSvg({{"simulated", schedule, simulation}});
  return flags.format == "json" ? ScheduleJson(schedule, simulation)
                                : ScheduleLanes(schedule, simulation);
}

Status WriteTimeline(const ScheduleFlags& flags, const std::vector<TimedSchedule>& schedules,
                     double us_per_unit) {
  if (flags.timeline.empty()) return Ok();
  return WriteFile(flags.timeline, ScheduleTrace(schedules, us_per_unit));
}

/// A measured step, and beside it the same actions as they would run if each took its mean time.
Result<std::string> ShowMeasured(const ScheduleFlags& flags) {
  STRATA_TRY(const MeasuredStep step, LoadMeasuredStep(flags.schedule));
  const PipelineSchedule& schedule = step.schedule.schedule;
  const Simulation simulated = Simulate(schedule, step.schedule.times);
  const std::vector<TimedSchedule> both = {
      {fmt::format("measured in step {}, µs", step.step), schedule, step.schedule.measured},
      {"simulated, µs", schedule, simulated}};
  STRATA_RETURN_IF_ERROR(WriteTimeline(flags, both, 1.0));
  if (flags.format == "svg") return ScheduleSvg(both);
  if (flags.format == "json") return ScheduleJson(schedule, step.schedule.measured);
  if (flags.format == "actions") return ActionLists(schedule);
  if (flags.format == "csv" && flags.has_format) return ScheduleCsv(schedule);
  return CompareSchedules(both);
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
  if (!flags.check.empty()) return Check(flags);
  STRATA_TRY(const ActionTimes times, ParseTimes(flags.times));
  std::string text;
  if (flags.search) {
    STRATA_TRY(text, Search(flags, times));
  } else if (LooksLikeTrace(flags.schedule)) {
    STRATA_TRY(text, ShowMeasured(flags));
  } else {
    STRATA_TRY(const PipelineSchedule schedule, Load(flags));
    if (auto valid = Validate(schedule, flags); !valid)
      return std::move(valid).error().In(flags.schedule);
    STRATA_TRY(text, Print(schedule, flags, times));
    const Simulation simulation = SimulateWith(schedule, times);
    constexpr double kUsPerUnit = 1000.0;
    STRATA_RETURN_IF_ERROR(WriteTimeline(flags, {{"simulated", schedule, simulation}}, kUsPerUnit));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli

#include "cli/passes/simulate_pipeline.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/render/schedule/schedule_lanes.h"
#include "passes/pipeline/schedule/schedule_text.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

/// What runs in a stage, with the end of its graph's name and that of the action.
struct StageGraph {
  std::string_view graph, action;
};
constexpr std::array<StageGraph, 4> kStageGraphs = {
    {{"forward", "F"}, {"backward", "B"}, {"backward_input", "I"}, {"backward_weight", "W"}}};

Result<double> MicrosecondsOf(const std::string& run, const std::string& graph,
                              const Topology& topology) {
  const char separator = run.find('#') == std::string::npos ? '#' : ',';
  STRATA_TRY(const Snapshot snapshot, LoadRef(fmt::format("{}{}graph={}", run, separator, graph)));
  STRATA_TRY(const NodeCost cost, NodeCost::Make(topology, snapshot.graph()));
  STRATA_TRY(const Timeline timeline, Simulate(snapshot.graph(), cost));
  return timeline.step_us;
}

/// The times of the graphs that the run has. A stage without halves of a backward does all in W.
Result<ActionTimes> TimesOf(const std::string& run, const PipelineSchedule& schedule,
                            const Topology& topology) {
  ActionTimes times;
  for (int64_t stage = 0; stage < schedule.num_stages(); ++stage) {
    const auto graph_of = [&](std::string_view part) {
      return fmt::format("stage{}.{}", stage, part);
    };
    for (const auto& [graph, action] : kStageGraphs) {
      auto us = MicrosecondsOf(run, graph_of(graph), topology);
      const bool is_half = action == "I" || action == "W";
      if (!us && !is_half) return std::move(us).error();
      const double whole = times.of_action[fmt::format("{}B", stage)];
      times.of_action[fmt::format("{}{}", stage, action)] =
          us ? *us : (action == "W" ? whole : 0.0);
    }
  }
  return times;
}

/// A forward and a backward that overlap take as long as one after the other.
void AddOverlaps(const PipelineSchedule& schedule, ActionTimes& times) {
  for (const auto& rank : schedule.ranks) {
    for (const auto& action : rank) {
      if (!action || action->type != ActionType::kOverlap) continue;
      double sum = 0;
      for (const Action& part : action->parts)
        sum += times.Of(part);
      times.of_action[TextWithoutMicrobatch(*action)] = sum;
    }
  }
}

/// Whether a schedule has actions `F`, `B`, `I` or `W`.
bool Runs(const PipelineSchedule& schedule, std::string_view letter) {
  bool found = false;
  for (const auto& rank : schedule.ranks)
    for (const auto& action : rank)
      if (action)
        ForEachPart(*action, [&](const Action& part) { found |= ToString(part.type) == letter; });
  return found;
}

/// Stages that the run has.
int64_t CountStages(const std::string& run) {
  const char separator = run.find('#') == std::string::npos ? '#' : ',';
  int64_t stages = 0;
  while (LoadRef(fmt::format("{}{}graph=stage{}.forward", run, separator, stages)))
    ++stages;
  return stages;
}

}  // namespace

Result<SimulatedPipeline> SimulatePipeline(const std::string& run, const std::string& schedule,
                                           int64_t ranks, int64_t microbatches,
                                           const Topology& topology) {
  const int64_t stages = CountStages(run);
  if (stages == 0) {
    STRATA_TRY(const Ref ref, ParseRef(run));
    STRATA_TRY([[maybe_unused]] const MappedFile file, MappedFile::Open(ref.file));
    return Error("no stages: {}: record a training with pipeline_parallel_degree", run);
  }
  SimulatedPipeline pipeline;
  if (schedule.ends_with(".csv")) {
    STRATA_TRY(const std::string text, ReadFile(schedule));
    STRATA_TRY(pipeline.schedule, ParseScheduleCsv(text, schedule));
  } else {
    STRATA_TRY(const ScheduleKind kind, FindScheduleKind(schedule));
    if (stages % ranks != 0)
      return Error("{} stages on {} ranks: --ranks: take a divisor", stages, ranks);
    STRATA_TRY(pipeline.schedule, MakeSchedule(kind, {.ranks = ranks,
                                                      .stages_per_rank = stages / ranks,
                                                      .microbatches = microbatches}));
  }
  if (pipeline.schedule.num_stages() != stages) {
    return Error("the run has {} stages, the schedule {}: {}: take another schedule", stages,
                 pipeline.schedule.num_stages(), run);
  }
  STRATA_TRY(pipeline.times, TimesOf(run, pipeline.schedule, topology));
  AddOverlaps(pipeline.schedule, pipeline.times);
  pipeline.simulation = Simulate(pipeline.schedule, pipeline.times);
  return pipeline;
}

std::string PipelineText(const SimulatedPipeline& pipeline, const std::string& topology) {
  const PipelineSchedule& schedule = pipeline.schedule;
  std::vector<std::string_view> actions;
  for (const auto& [graph, action] : kStageGraphs)
    if (Runs(schedule, action)) actions.push_back(action);
  std::string text = fmt::format("{:<10}", "µs");
  for (const std::string_view action : actions)
    text += fmt::format("  {:>12}", action);
  text += '\n';
  for (int64_t stage = 0; stage < schedule.num_stages(); ++stage) {
    text += fmt::format("{:<10}", fmt::format("stage {}", stage));
    for (const std::string_view action : actions)
      text += fmt::format("  {:>12.1f}",
                          pipeline.times.of_action.at(fmt::format("{}{}", stage, action)));
    text += '\n';
  }
  return text + '\n' +
         CompareSchedules({{fmt::format("on {}, µs", topology), schedule, pipeline.simulation}});
}

}  // namespace strata::cli

#include "viewer/compare/pipeline_lanes.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/pipeline/schedule/simulation.h"
#include "refs/pipeline_actions.h"
#include "scene/words.h"
#include "store/trace_reader.h"

namespace strata::viewer {
namespace {

/// The graph that an action runs; "": it runs none. Source: passes/pipeline/split_backward.h and
/// its neighbours.
std::string GraphOf(const Action& action) {
  switch (action.type) {
    case ActionType::kForward:
      return fmt::format("stage{}.forward", action.stage);
    case ActionType::kBackward:
      return fmt::format("stage{}.backward", action.stage);
    case ActionType::kBackwardInput:
      return fmt::format("stage{}.backward_input", action.stage);
    case ActionType::kBackwardWeight:
      return fmt::format("stage{}.backward_weight", action.stage);
    case ActionType::kUnshard:
      return fmt::format("stage{}.unshard", action.stage);
    case ActionType::kReduceGradient:
      return fmt::format("stage{}.reduce", action.stage);
    case ActionType::kOverlap:
      return fmt::format("overlap.F{}.B{}", action.parts.at(0).stage, action.parts.at(1).stage);
    default:
      return "";
  }
}

float ShareOf(ActionType type) {
  switch (type) {
    case ActionType::kForward:
      return 0.15F;
    case ActionType::kBackward:
      return 0.85F;
    case ActionType::kBackwardInput:
      return 0.7F;
    case ActionType::kBackwardWeight:
      return 0.5F;
    case ActionType::kOverlap:
      return 1.0F;
    default:
      return -1;
  }
}

LaneChart ChartOf(const PipelineSchedule& schedule, const Simulation& times,
                  const std::string& title) {
  LaneChart chart{.length = times.makespan, .words = "", .lanes = {}, .actions = {}};
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank)
    chart.lanes.push_back({.name = fmt::format("rank {}", rank), .spans = {}});
  for (const ActionSpan& span : times.spans) {
    if (span.end <= span.begin) continue;
    const Action& action = *schedule.ranks[static_cast<size_t>(span.rank)][span.index];
    chart.lanes[static_cast<size_t>(span.rank)].spans.push_back(
        {.node = {}, .begin = span.begin, .end = span.end, .action = chart.actions.size()});
    const std::string name = ToString(action);
    chart.actions.push_back({.name = name,
                             .words = fmt::format("rank {}: {}, {}", span.rank, name,
                                                  TimeText((span.end - span.begin) * 1e-3)),
                             .graph = GraphOf(action),
                             .share = ShareOf(action.type),
                             .is_short = action.type == ActionType::kReceiveForward ||
                                         action.type == ActionType::kReceiveBackward});
  }
  for (Lane& lane : chart.lanes)
    std::ranges::stable_sort(lane.spans, {}, &LaneSpan::begin);
  chart.words = fmt::format("{}: {}, bubble {:.1f} %.", title, TimeText(times.makespan * 1e-3),
                            100.0 * times.bubble());
  return chart;
}

}  // namespace

std::optional<PipelineCharts> PipelineLanes(const std::string& trace_path, RunId run) {
  const Result<std::unique_ptr<TraceReader>> trace = TraceReader::Open(trace_path);
  if (!trace) return std::nullopt;
  const Result<std::optional<MeasuredStep>> step = LoadMeasuredStep(**trace, run);
  if (!step || !*step) return std::nullopt;
  const PipelineSchedule& schedule = (*step)->schedule.schedule;
  return PipelineCharts{.measured = ChartOf(schedule, (*step)->schedule.measured,
                                            fmt::format("Measured in step {}", (*step)->step)),
                        .simulated = ChartOf(schedule, Simulate(schedule, (*step)->schedule.times),
                                             "Simulated with the mean time of each action")};
}

}  // namespace strata::viewer

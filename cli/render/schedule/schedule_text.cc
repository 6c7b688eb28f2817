#include "cli/render/schedule/schedule_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"

namespace strata::cli {
namespace {

const Action& ActionOf(const PipelineSchedule& schedule, const ActionSpan& span) {
  return *schedule.ranks[static_cast<size_t>(span.rank)][span.index];
}

/// The longest label per unit of time decides how wide a unit is.
double ColumnsPerTime(const PipelineSchedule& schedule, const Simulation& simulation) {
  double columns = 0.0;
  for (const ActionSpan& span : simulation.spans) {
    if (span.end <= span.begin) continue;
    const auto width = static_cast<double>(ToString(ActionOf(schedule, span)).size() + 1);
    columns = std::max(columns, width / (span.end - span.begin));
  }
  return columns;
}

}  // namespace

std::string ScheduleLanes(const PipelineSchedule& schedule, const Simulation& simulation) {
  const double scale = ColumnsPerTime(schedule, simulation);
  const auto column = [&](double time) { return static_cast<size_t>(std::lround(time * scale)); };
  std::vector<std::string> lanes(schedule.ranks.size());
  for (const ActionSpan& span : simulation.spans) {
    if (span.end <= span.begin) continue;
    std::string& lane = lanes[static_cast<size_t>(span.rank)];
    while (lane.size() < column(span.begin))
      lane += '.';
    lane += ToString(ActionOf(schedule, span));
    const size_t end = column(span.end);
    if (lane.size() + 1 < end) lane.append(end - 1 - lane.size(), '-');
    lane += ' ';
  }
  std::string text;
  for (size_t rank = 0; rank < lanes.size(); ++rank) {
    while (!lanes[rank].empty() && lanes[rank].back() == ' ')
      lanes[rank].pop_back();
    text += fmt::format("rank {}  {}\n", rank, lanes[rank]);
  }
  return text + fmt::format("\ntime {:g}, bubble {:.1f} %, microbatches in flight by rank: {}\n",
                            simulation.makespan, 100.0 * simulation.bubble(),
                            fmt::join(simulation.peak_in_flight, " "));
}

std::string ActionLists(const PipelineSchedule& schedule) {
  std::string text;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    text += fmt::format("rank {} ", rank);
    for (const std::optional<Action>& action : schedule.ranks[rank])
      if (action) text += " " + ToString(*action);
    text += '\n';
  }
  return text;
}

std::string FoundSchedulesText(const std::vector<FoundSchedule>& found, size_t top) {
  const size_t shown = top == 0 ? found.size() : std::min(top, found.size());
  std::string text =
      fmt::format("{:>8}  {:>8}  {:>9}  {}\n", "time", "bubble", "in flight", "schedule");
  for (size_t i = 0; i < shown; ++i) {
    text += fmt::format("{:>8g}  {:>6.1f} %  {:>9g}  {}\n", found[i].simulation.makespan,
                        100.0 * found[i].simulation.bubble(), found[i].memory, found[i].name);
  }
  return text;
}

std::string ScheduleJson(const PipelineSchedule& schedule, const Simulation& simulation) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.schedule/1");
  json.Field("microbatches", schedule.microbatches).Key("rank_of_stage").BeginArray();
  for (const int64_t rank : schedule.rank_of_stage)
    json.Int(rank);
  json.EndArray().Field("time", simulation.makespan).Field("bubble", simulation.bubble());
  json.Key("in_flight").BeginArray();
  for (const int64_t peak : simulation.peak_in_flight)
    json.Int(peak);
  json.EndArray().Key("actions").BeginArray();
  for (const ActionSpan& span : simulation.spans) {
    json.Break(2).BeginObject().Field("rank", span.rank);
    json.Field("action", ToString(ActionOf(schedule, span)));
    json.Field("begin", span.begin).Field("end", span.end).EndObject();
  }
  json.EndArray().EndObject();
  return text + "\n";
}

}  // namespace strata::cli

#include "cli/render/schedule/schedule_lanes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"

namespace strata::cli {
namespace {

constexpr double kLanesWidth = 1000.0, kLanesLeft = 56.0, kLane = 22.0, kGap = 3.0, kTitle = 22.0;
constexpr double kCharacter = 6.2;  // width of a letter on an action

const Action& SpanAction(const PipelineSchedule& schedule, const ActionSpan& span) {
  return *schedule.ranks[static_cast<size_t>(span.rank)][span.index];
}

struct ActionClass {
  std::string_view name, fill;
};

constexpr ActionClass kClasses[] = {{"F", "#56b4e9"},       {"B", "#e69f00"},
                                    {"I", "#f0d264"},       {"W", "#8fbf5a"},
                                    {"overlap", "#cc79a7"}, {"communication", "#8d99ae"},
                                    {"idle", "none"}};

const ActionClass& ClassOf(ActionType type) {
  switch (type) {
    case ActionType::kForward:
      return kClasses[0];
    case ActionType::kBackward:
      return kClasses[1];
    case ActionType::kBackwardInput:
      return kClasses[2];
    case ActionType::kBackwardWeight:
      return kClasses[3];
    case ActionType::kOverlap:
      return kClasses[4];
    default:
      return kClasses[5];
  }
}

/// A rank that receives waits for most of the time.
bool IsWait(ActionType type) {
  return type == ActionType::kReceiveForward || type == ActionType::kReceiveBackward;
}

/// The label of an action that is too short for its name.
std::string Microbatch(const Action& action) {
  return action.microbatch >= 0 ? fmt::format("{}", action.microbatch) : std::string();
}

/// Times of measured actions are exact to a nanosecond.
double Rounded(double us) {
  return std::round(us * 1e3) / 1e3;
}

void AppendSpan(const TimedSchedule& timed, const ActionSpan& span, double scale, double top,
                std::string& svg) {
  const Action& action = SpanAction(timed.schedule, span);
  const double x = kLanesLeft + span.begin * scale, width = (span.end - span.begin) * scale;
  if (width < 0.05) return;
  const std::string name = ToString(action);
  const double height = IsWait(action.type) ? 3.0 : kLane - kGap;
  const auto fits = [&](std::string_view label) {
    return height > 10.0 && width > static_cast<double>(label.size()) * kCharacter;
  };
  const double y = top + static_cast<double>(span.rank) * kLane + (kLane - kGap - height);
  svg += fmt::format(
      R"(<g><title>rank {}: {}, {:g} to {:g}</title><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)",
      span.rank, name, span.begin, span.end, x, y, width, height, ClassOf(action.type).fill);
  const std::string label = fits(name) ? name : Microbatch(action);
  if (!label.empty() && fits(label)) {
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" font-size="10" fill="#000">{}</text>)",
                       x + 2.0, y + 13.0, label);
  }
  svg += "</g>\n";
}

void AppendLanes(const TimedSchedule& timed, double scale, double top, std::string& svg) {
  svg += fmt::format(
      R"(<text x="0" y="{:.1f}" font-size="12" font-weight="bold" fill="currentColor">{}: time {:g}, bubble {:.1f} %</text>)"
      "\n",
      top + 14.0, timed.title, timed.times.makespan, 100.0 * timed.times.bubble());
  top += kTitle;
  for (int64_t rank = 0; rank < timed.schedule.num_ranks(); ++rank) {
    const double y = top + static_cast<double>(rank) * kLane;
    svg += fmt::format(
        R"(<text x="0" y="{:.1f}" font-size="11" fill="currentColor">rank {}</text><rect x="{:g}" y="{:.1f}" width="{:.1f}" height="{:g}" fill="none" stroke="currentColor" stroke-opacity="0.25"/>)"
        "\n",
        y + 14.0, rank, kLanesLeft, y, timed.times.makespan * scale, kLane - kGap);
  }
  for (const ActionSpan& span : timed.times.spans)
    AppendSpan(timed, span, scale, top, svg);
}

void AppendLegend(double top, std::string& svg) {
  double x = kLanesLeft;
  for (const ActionClass& kind : kClasses) {
    svg += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="10" height="10" fill="{}" stroke="currentColor" stroke-opacity="0.25"/><text x="{:.1f}" y="{:.1f}" font-size="11" fill="currentColor">{}</text>)",
        x, top, kind.fill, x + 14.0, top + 9.0, kind.name);
    x += 14.0 + kCharacter * static_cast<double>(kind.name.size()) + 20.0;
  }
  svg += '\n';
}

}  // namespace

std::string ScheduleSvg(const std::vector<TimedSchedule>& schedules) {
  double longest = 0.0, height = kTitle;
  for (const TimedSchedule& timed : schedules) {
    longest = std::max(longest, timed.times.makespan);
    height += 2.0 * kTitle + kLane * static_cast<double>(timed.schedule.num_ranks());
  }
  const double scale = longest > 0.0 ? (kLanesWidth - kLanesLeft) / longest : 0.0;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:g} {:g}" width="100%" class="lanes" role="img" font-family="sans-serif">)"
      "\n<title>Ranks of a pipeline over time</title>\n",
      kLanesWidth, height);
  double top = 0.0;
  for (const TimedSchedule& timed : schedules) {
    AppendLanes(timed, scale, top, svg);
    top += 2.0 * kTitle + kLane * static_cast<double>(timed.schedule.num_ranks());
  }
  AppendLegend(top, svg);
  return svg + "</svg>\n";
}

std::string ScheduleTrace(const std::vector<TimedSchedule>& schedules, double us_per_unit) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Key("traceEvents").BeginArray();
  const auto name = [&](std::string_view what, int64_t pid, int64_t tid, std::string_view value) {
    json.Break(2).BeginObject().Field("name", what).Field("ph", "M").Field("pid", pid);
    json.Field("tid", tid).Key("args").BeginObject().Field("name", value).EndObject().EndObject();
  };
  for (size_t i = 0; i < schedules.size(); ++i) {
    const TimedSchedule& timed = schedules[i];
    const auto pid = static_cast<int64_t>(i);
    name("process_name", pid, 0, timed.title);
    for (int64_t rank = 0; rank < timed.schedule.num_ranks(); ++rank)
      name("thread_name", pid, rank, fmt::format("rank {}", rank));
    for (const ActionSpan& span : timed.times.spans) {
      if (span.end <= span.begin) continue;
      const Action& action = SpanAction(timed.schedule, span);
      json.Break(2).BeginObject().Field("name", ToString(action)).Field("ph", "X");
      json.Field("cat", ClassOf(action.type).name).Field("pid", pid).Field("tid", span.rank);
      json.Field("ts", Rounded(span.begin * us_per_unit));
      json.Field("dur", Rounded((span.end - span.begin) * us_per_unit)).EndObject();
    }
  }
  json.EndArray().Field("displayTimeUnit", "ms").EndObject();
  return text + "\n";
}

std::string CompareSchedules(const std::vector<TimedSchedule>& schedules) {
  std::string text =
      fmt::format("{:<24}  {:>12}  {:>8}  {}\n", "", "time", "bubble", "busy by rank");
  for (const TimedSchedule& timed : schedules) {
    std::vector<std::string> busy;
    for (const double of_rank : timed.times.busy)
      busy.push_back(fmt::format("{:.0f}", of_rank));
    text += fmt::format("{:<24}  {:>12.0f}  {:>6.1f} %  {}\n", timed.title, timed.times.makespan,
                        100.0 * timed.times.bubble(), fmt::join(busy, " "));
  }
  return text;
}

}  // namespace strata::cli

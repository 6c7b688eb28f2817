#include "cli/render/schedule/timeline_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "passes/core/collectives.h"
#include "passes/memory/tags.h"
#include "passes/simulate/collective_uses.h"

namespace strata::cli {
namespace {

std::string Size(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit)
    bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string Milliseconds(double us) {
  return fmt::format("{:.3f} ms", us / 1000);
}

/// "-12.3 %"; empty if there is nothing to compare with.
std::string Change(double before, double after) {
  if (before <= 0) return "";
  return fmt::format("{:+.1f} %", (after - before) / before * 100);
}

/// The part of the time of collectives in which computation runs, in percent.
double Overlap(const Timeline& timeline) {
  const double busy = timeline.busy_us();
  return busy <= 0 ? 0 : std::clamp(100 * (1 - timeline.exposed_us() / busy), 0.0, 100.0);
}

struct TimelineRow {
  std::string_view name;
  double (*value)(const SimulatedStep&);
};

constexpr TimelineRow kRows[] = {
    {"step", [](const SimulatedStep& step) { return step.timeline.step_us; }},
    {"at least", [](const SimulatedStep& step) { return step.bound.least_us; }},
    {"computation", [](const SimulatedStep& step) { return step.timeline.compute_us; }},
    {"collectives", [](const SimulatedStep& step) { return step.timeline.busy_us(); }},
    {"exposed", [](const SimulatedStep& step) { return step.timeline.exposed_us(); }},
};

/// In percent.
constexpr TimelineRow kParts[] = {
    {"overlapped", [](const SimulatedStep& step) { return Overlap(step.timeline); }},
    {"of the most",
     [](const SimulatedStep& step) { return 100 * step.bound.Overlapped(step.timeline.step_us); }},
};

std::string Summary(const SimulatedStep& step, const SimulatedStep* before) {
  std::string text;
  if (before == nullptr) {
    for (const TimelineRow& row : kRows)
      text += fmt::format("{:<12} {:>14}\n", row.name, Milliseconds(row.value(step)));
    for (const TimelineRow& row : kParts)
      text += fmt::format("{:<12} {:>12.1f} %\n", row.name, row.value(step));
    return text;
  }
  text = fmt::format("{:<12} {:>14} {:>14} {:>10}\n", "", "before", "after", "change");
  for (const TimelineRow& row : kRows) {
    const double old = row.value(*before), now = row.value(step);
    text += fmt::format("{:<12} {:>14} {:>14} {:>10}\n", row.name, Milliseconds(old),
                        Milliseconds(now), Change(old, now));
  }
  for (const TimelineRow& row : kParts)
    text += fmt::format("{:<12} {:>12.1f} % {:>12.1f} %\n", row.name, row.value(*before),
                        row.value(step));
  return text;
}

std::string Groups(const Timeline& timeline) {
  if (timeline.groups.empty()) return "\nno collectives\n";
  std::string text = fmt::format("\n{:<20} {:>12} {:>12} {:>14} {:>14}\n", "group", "collectives",
                                 "bytes", "time", "exposed");
  for (const GroupUse& use : timeline.groups) {
    text += fmt::format("{:<20} {:>12} {:>12} {:>14} {:>14}\n", use.group, use.count,
                        Size(use.bytes), Milliseconds(use.busy_us), Milliseconds(use.exposed_us));
  }
  return text;
}

std::string Kinds(const Graph& graph) {
  const std::vector<CollectiveUse> uses = CollectiveUses(graph);
  if (uses.empty()) return "";
  std::string text = fmt::format("\n{:<10} {:<20} {:<26} {:>7} {:>12}\n", "phase", "group",
                                 "collective", "count", "bytes");
  for (const CollectiveUse& use : uses) {
    text += fmt::format("{:<10} {:<20} {:<26} {:>7} {:>12}\n", ToString(use.phase), use.group,
                        use.op, use.count, Size(static_cast<double>(use.bytes)));
  }
  return text;
}

void AppendKinds(const Graph& graph, JsonWriter& json) {
  json.Key("kinds").BeginArray();
  for (const CollectiveUse& use : CollectiveUses(graph)) {
    json.BeginObject()
        .Field("phase", ToString(use.phase))
        .Field("group", use.group)
        .Field("op", use.op)
        .Field("collectives", use.count)
        .Field("bytes", use.bytes)
        .EndObject();
  }
  json.EndArray();
}

void AppendTimes(const SimulatedStep& step, JsonWriter& json) {
  const Timeline& timeline = step.timeline;
  json.BeginObject()
      .Field("step_us", timeline.step_us)
      .Field("least_us", step.bound.least_us)
      .Field("serial_us", step.bound.serial_us)
      .Field("compute_us", timeline.compute_us)
      .Field("collective_us", timeline.busy_us())
      .Field("exposed_us", timeline.exposed_us());
  json.Key("groups").BeginArray();
  for (const GroupUse& use : timeline.groups) {
    json.BeginObject()
        .Field("group", use.group)
        .Field("collectives", use.count)
        .Field("bytes", use.bytes)
        .Field("busy_us", use.busy_us)
        .Field("exposed_us", use.exposed_us)
        .EndObject();
  }
  json.EndArray();
  AppendKinds(step.graph, json);
  json.EndObject();
}

void AppendEvent(const Graph& graph, const TimelineEvent& event, JsonWriter& json) {
  const std::string_view name = event.is_idle ? std::string_view("wait") : graph.op(event.node);
  json.Break(2)
      .BeginObject()
      .Field("name", name)
      .Field("cat", event.is_idle       ? "exposed"
                    : event.stream == 0 ? "compute"
                                        : "collective")
      .Field("ph", "X")
      .Field("ts", event.start_us)
      .Field("dur", event.end_us - event.start_us)
      .Field("pid", 0)
      .Field("tid", event.stream);
  json.Key("args").BeginObject().Field("node", graph.name(event.node));
  if (const std::string_view module = ModuleOf(graph, event.node); !module.empty())
    json.Field("module", module);
  json.Field("phase", ToString(graph.node(event.node).phase)).EndObject().EndObject();
}

}  // namespace

std::string TimelineText(const SimulatedStep& step, const SimulatedStep* before) {
  return Summary(step, before) + Groups(step.timeline) + Kinds(step.graph);
}

std::string TimelineJson(const SimulatedStep& step, const SimulatedStep* before,
                         std::string_view topology) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.simulate/1").Field("topology", topology);
  json.Field("graph", step.graph.name_text());
  if (before != nullptr) {
    json.Key("before");
    AppendTimes(*before, json);
  }
  json.Key("after");
  AppendTimes(step, json);
  json.EndObject();
  return text + "\n";
}

std::string TimelineTrace(const SimulatedStep& step) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Key("traceEvents").BeginArray();
  for (size_t i = 0; i < step.timeline.streams.size(); ++i) {
    json.Break(2)
        .BeginObject()
        .Field("name", "thread_name")
        .Field("ph", "M")
        .Field("pid", 0)
        .Field("tid", static_cast<int64_t>(i));
    json.Key("args").BeginObject().Field("name", step.timeline.streams[i]).EndObject().EndObject();
  }
  for (const TimelineEvent& event : step.timeline.events)
    AppendEvent(step.graph, event, json);
  json.EndArray().Field("displayTimeUnit", "ms").EndObject();
  return text + "\n";
}

}  // namespace strata::cli

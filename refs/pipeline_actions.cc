#include "refs/pipeline_actions.h"

#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "passes/pipeline/schedule/schedule_text.h"

namespace strata {
namespace {

constexpr double kNsPerUs = 1000.0;

/// The number behind `"key": `.
std::optional<int64_t> NumberOf(std::string_view attributes, std::string_view key) {
  const std::string name = fmt::format("\"{}\": ", key);
  const size_t at = attributes.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  int64_t value = 0;
  const char* const begin = attributes.data() + at + name.size();
  const auto [end, problem] = std::from_chars(begin, attributes.data() + attributes.size(), value);
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<EventRecord> ActionEvents(const std::vector<MeasuredAction>& actions, int64_t step,
                                      double start_ns) {
  std::vector<EventRecord> events;
  for (const MeasuredAction& measured : actions) {
    events.push_back(
        {.kind = std::string(kActionEvent),
         .name = ToString(measured.action),
         .start_ns = static_cast<int64_t>(measured.begin - start_ns),
         .duration_ns = static_cast<int64_t>(measured.end - measured.begin),
         .node = StableId::kNone,
         .attributes = fmt::format(R"({{"step": {}, "rank": {}}})", step, measured.rank)});
  }
  return events;
}

Result<std::optional<MeasuredStep>> LoadMeasuredStep(TraceReader& trace, RunId run) {
  STRATA_TRY(const std::vector<EventRecord> events, trace.LoadEvents(run));
  int64_t last = -1;
  std::vector<MeasuredAction> actions;
  for (const EventRecord& event : events) {
    if (event.kind != kActionEvent) continue;
    const std::optional<int64_t> step = NumberOf(event.attributes, "step");
    const std::optional<int64_t> rank = NumberOf(event.attributes, "rank");
    if (!step || !rank || *rank < 0 || *rank > 65'535)
      return Error("an action without step or rank: event {}: {}", event.name, event.attributes);
    if (*step < last) continue;
    if (*step > last) actions.clear();
    last = *step;
    STRATA_TRY(Action action, ParseAction(event.name));
    const double begin = static_cast<double>(event.start_ns) / kNsPerUs;
    actions.push_back({.rank = *rank,
                       .action = std::move(action),
                       .begin = begin,
                       .end = begin + static_cast<double>(event.duration_ns) / kNsPerUs});
  }
  if (actions.empty()) return std::optional<MeasuredStep>();
  MeasuredStep measured{.step = last, .schedule = {}};
  STRATA_TRY(measured.schedule, ScheduleOfMeasured(actions));
  return std::optional(std::move(measured));
}

Result<MeasuredStep> LoadMeasuredStep(const std::string& path) {
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
  std::optional<MeasuredStep> found;
  for (const StoredRun& run : trace->runs()) {
    STRATA_TRY(std::optional<MeasuredStep> of_run, LoadMeasuredStep(*trace, run.id));
    if (of_run) found = std::move(of_run);
  }
  if (found) return *std::move(found);
  return Error(
      "no measured actions of a pipeline: {}: record them with strata train --trace T --profile 1",
      path);
}

}  // namespace strata

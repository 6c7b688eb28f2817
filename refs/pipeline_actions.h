#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/pipeline/schedule/measured.h"
#include "store/trace.h"
#include "store/trace_reader.h"

namespace strata {

/// The kind of events of a trace that are actions of a pipeline: their names are `2F0`, their
/// attributes `{"step": 5, "rank": 1}`.
inline constexpr std::string_view kActionEvent = "pipeline_action";

/// What ranks did in `step`; `start_ns`: of the run, as the actions count.
std::vector<EventRecord> ActionEvents(const std::vector<MeasuredAction>& actions, int64_t step,
                                      double start_ns);

/// A measured step of a trace, in µs.
struct MeasuredStep {
  int64_t step = 0;
  MeasuredSchedule schedule;
};
/// Of the last step of `run` whose actions were recorded; none: no step's were. Errors: an event
/// that is not an action, actions that are not those of a pipeline.
Result<std::optional<MeasuredStep>> LoadMeasuredStep(TraceReader& trace, RunId run);
/// Of the last run of a trace file that has one. Errors: none has.
Result<MeasuredStep> LoadMeasuredStep(const std::string& path);

}  // namespace strata

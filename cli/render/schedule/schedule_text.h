#pragma once
#include <string>
#include <vector>

#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/schedule/search.h"
#include "passes/pipeline/schedule/simulation.h"

namespace strata::cli {

/// A line per rank, time from left to right, `.` where a rank is idle; then bubble, time and
/// microbatches in flight.
///
///     rank 0  0F0 0F1 ... ... 0B0---- 0B1----
std::string ScheduleLanes(const PipelineSchedule& schedule, const Simulation& simulation);

/// The actions of each rank as text: `rank 0  0F0 0SEND_F0 …`.
std::string ActionLists(const PipelineSchedule& schedule);

/// Found schedules as a table, at most `top`; 0: all.
std::string FoundSchedulesText(const std::vector<FoundSchedule>& found, size_t top);

/// `strata.schedule/1`: spans of a simulated schedule.
std::string ScheduleJson(const PipelineSchedule& schedule, const Simulation& simulation);

}  // namespace strata::cli

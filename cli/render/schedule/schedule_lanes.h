#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/schedule/simulation.h"

namespace strata::cli {

/// A schedule, and when its actions run.
struct TimedSchedule {
  std::string title;  ///< `simulated`, `measured in step 5`
  const PipelineSchedule& schedule;
  const Simulation& times;
};

/// A picture: a lane per rank, time from left to right with one scale for all schedules, which
/// stand one below the other. Forward, backward and its halves, communication and what is idle have
/// colours of their own; the name of an action shows on it, or under the pointer.
std::string ScheduleSvg(const std::vector<TimedSchedule>& schedules);

/// The same in the Trace Event Format, which Perfetto and chrome://tracing read: a process per
/// schedule, a thread per rank. `us_per_unit`: of the times.
std::string ScheduleTrace(const std::vector<TimedSchedule>& schedules, double us_per_unit = 1.0);

/// `measured    time 10.5 ms, bubble 20.0 %, …` for each.
std::string CompareSchedules(const std::vector<TimedSchedule>& schedules);

}  // namespace strata::cli

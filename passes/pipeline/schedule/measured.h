#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/schedule/simulation.h"

namespace strata {

/// An action that a rank of axis `pp` executed.
struct MeasuredAction {
  int64_t rank = 0;
  Action action;
  double begin = 0.0, end = 0.0;  ///< in one unit, of one clock for all ranks
};

/// A step of a pipeline as it ran.
struct MeasuredSchedule {
  PipelineSchedule schedule;  ///< what ranks executed, SEND and RECV among it
  /// When it ran, from the first action on. Ranks are busy with what neither sends nor receives.
  Simulation measured;
  /// Mean times of actions. The time of a transfer is what a reception lasted after the values were
  /// sent.
  ActionTimes times;
};

/// From the actions of all ranks, those of a rank in their order. Errors: none; ranks or stages
/// that are left out.
Result<MeasuredSchedule> ScheduleOfMeasured(const std::vector<MeasuredAction>& actions);

}  // namespace strata

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/schedule/simulation.h"

namespace strata {

/// What to search a schedule for.
struct ScheduleSearch {
  int64_t ranks = 1;
  int64_t microbatches = 1;
  int64_t most_stages_per_rank = 2;
  /// Of a rank's whole part of the model; several stages of a rank share it evenly.
  ActionTimes times = {};
  /// Microbatches whose activations of its whole part a rank can hold; none: all.
  std::optional<int64_t> memory = std::nullopt;
};

struct FoundSchedule {
  std::string name;  ///< of its kind, or `greedy`, with what it was made of
  PipelineSchedule schedule;
  Simulation simulation;
  double memory = 0.0;  ///< most microbatches in flight, in units of ScheduleSearch::memory
};

/// Schedules that fit into memory, fastest first: those of every kind, and greedy ones. A greedy
/// schedule starts, wherever a rank is idle, what can start: input gradients first, then forwards
/// while activations fit, then weight gradients. Of equal times the one that needs less memory is
/// first. Cost: linear in actions for each of about 4 · microbatches schedules.
/// Errors: a memory that no schedule fits into.
Result<std::vector<FoundSchedule>> SearchSchedules(const ScheduleSearch& search);

/// The times of a stage, where a rank has several.
ActionTimes TimesOfStage(const ActionTimes& times, int64_t stages_per_rank);

}  // namespace strata

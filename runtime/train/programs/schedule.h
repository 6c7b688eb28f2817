#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace strata {

/// What the learning rate is multiplied by in step `step` (from 0): warm-up, a stable part, decay.
///
///   W = min(warmup, total)   D = round(total · decay_ratio), or all after the warm-up
///   S = total + 1 - W - D: one step more than there are, so that the last one's factor is not 0
///   step < W: (step + 1) / W     step < W + S: 1     else with p = (step + 1 - W - S) / D:
///   linear 1 - p, sqrt 1 - √p, cosine (1 + cos πp) / 2, scaled to end at min_lr_factor
///
/// A decay that would reach into the warm-up is shortened. Source: torchtitan components/
/// lr_scheduler.py.
double LearningRateFactor(const LrSchedulerConfig& config, int64_t step);

/// What of the schedule is otherwise than asked for, since its steps do not suffice; a line each.
std::vector<std::string> ScheduleWarnings(const TrainConfig& config);

/// Of step `step` (from 0) of a run: `lr`, scheduled.
double LearningRate(const TrainConfig& config, int64_t step, double lr);
/// Of `optimizer.lr`.
inline double LearningRate(const TrainConfig& config, int64_t step) {
  return LearningRate(config, step, config.optimizer.lr);
}

}  // namespace strata

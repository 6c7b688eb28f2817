#include "runtime/train/programs/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include <fmt/format.h>

namespace strata {

namespace {

/// Steps of the decay, if the warm-up leaves enough.
std::optional<int64_t> WantedDecay(const LrSchedulerConfig& config) {
  if (!config.decay_ratio) return std::nullopt;
  // Halves to even, as Python rounds.
  return static_cast<int64_t>(
      std::nearbyint(static_cast<double>(config.total_steps) * *config.decay_ratio));
}

}  // namespace

std::vector<std::string> ScheduleWarnings(const TrainConfig& config) {
  std::vector<std::string> warnings;
  if (!config.lr_scheduler) return warnings;
  const LrSchedulerConfig& scheduler = *config.lr_scheduler;
  const int64_t total = scheduler.total_steps;
  if (scheduler.warmup_steps > total) {
    warnings.push_back(
        fmt::format("lr_scheduler.warmup_steps {} are more than the {} steps: all of "
                    "them warm up",
                    scheduler.warmup_steps, total));
  }
  const int64_t left = total - std::min(scheduler.warmup_steps, total);
  if (const auto decay = WantedDecay(scheduler); decay && *decay > left) {
    warnings.push_back(
        fmt::format("lr_scheduler.decay_ratio {} asks for {} of {} steps, and the "
                    "warm-up leaves {}: so many decay",
                    *scheduler.decay_ratio, *decay, total, left));
  }
  return warnings;
}

double LearningRateFactor(const LrSchedulerConfig& config, int64_t step) {
  const int64_t total = config.total_steps;
  const int64_t warmup = std::min(config.warmup_steps, total);
  const int64_t decay = std::min(WantedDecay(config).value_or(total), total - warmup);
  const int64_t stable = total + 1 - warmup - decay;

  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (step < warmup + stable || decay == 0) return 1.0;
  const int64_t into = std::min(step + 1 - warmup - stable, decay);
  const double progress = static_cast<double>(into) / static_cast<double>(decay);
  double factor = 0.0;
  switch (config.decay_type) {
    case DecayType::kLinear:
      factor = 1.0 - progress;
      break;
    case DecayType::kSqrt:
      factor = 1.0 - std::sqrt(progress);
      break;
    case DecayType::kCosine:
      factor = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
      break;
  }
  return config.min_lr_factor + (1.0 - config.min_lr_factor) * factor;
}

double LearningRate(const TrainConfig& config, int64_t step, double lr) {
  if (!config.lr_scheduler) return lr;
  return lr * LearningRateFactor(*config.lr_scheduler, step);
}

}  // namespace strata

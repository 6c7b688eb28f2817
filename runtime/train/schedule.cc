#include "runtime/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace strata {

double LearningRateFactor(const LrSchedulerConfig& config, int64_t step) {
  const int64_t total = config.total_steps;
  const int64_t warmup = std::min(config.warmup_steps, total);
  int64_t decay = total - warmup;
  if (config.decay_ratio) {
    // Halves to even, as Python rounds.
    const auto wanted =
        static_cast<int64_t>(std::nearbyint(static_cast<double>(total) * *config.decay_ratio));
    decay = std::min(wanted, decay);
  }
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

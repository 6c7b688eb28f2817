#include "runtime/train/programs/schedule.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

std::vector<double> Factors(const LrSchedulerConfig& config, int64_t steps) {
  std::vector<double> factors;
  for (int64_t step = 0; step < steps; ++step)
    factors.push_back(LearningRateFactor(config, step));
  return factors;
}

TEST_CASE("warm-up rises in equal steps, and the last step still learns") {
  const LrSchedulerConfig config{.warmup_steps = 2, .total_steps = 6};
  // S = 1, D = 4: steps 2 is stable, then p = 1/4, 2/4, 3/4.
  CHECK_EQ(Factors(config, 6), std::vector<double>{0.5, 1.0, 1.0, 0.75, 0.5, 0.25});
}

TEST_CASE("warm-up, stable, decay: the share that decays") {
  LrSchedulerConfig config{.warmup_steps = 2, .total_steps = 10, .decay_ratio = 0.4};
  // D = 4, S = 5: steps 2 to 6 are stable.
  CHECK_EQ(Factors(config, 10), std::vector<double>{0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25});
  config.min_lr_factor = 0.2;
  CHECK_EQ(LearningRateFactor(config, 9), doctest::Approx(0.2 + 0.8 * 0.25).epsilon(1e-15));
}

TEST_CASE("root and cosine decay") {
  LrSchedulerConfig config{.warmup_steps = 0, .total_steps = 4, .decay_type = DecayType::kSqrt};
  CHECK_EQ(LearningRateFactor(config, 0), 1.0);
  CHECK_EQ(LearningRateFactor(config, 1), 1.0 - std::sqrt(0.25));
  config.decay_type = DecayType::kCosine;
  CHECK_EQ(LearningRateFactor(config, 2), 0.5 * (1.0 + std::cos(std::numbers::pi * 0.5)));
}

TEST_CASE("a warm-up longer than the run never ends, and a decay cannot reach into it") {
  CHECK_EQ(Factors({.warmup_steps = 200, .total_steps = 4}, 4),
           std::vector<double>{0.25, 0.5, 0.75, 1.0});
  CHECK_EQ(Factors({.warmup_steps = 2, .total_steps = 4, .decay_ratio = 1.0}, 4),
           std::vector<double>{0.5, 1.0, 1.0, 0.5});
}

TEST_CASE("a schedule that has no room for what was asked is told") {
  TrainConfig config;
  CHECK_EQ(ScheduleWarnings(config), std::vector<std::string>{});
  config.lr_scheduler = LrSchedulerConfig{.warmup_steps = 2, .total_steps = 4, .decay_ratio = 0.5};
  CHECK_EQ(ScheduleWarnings(config), std::vector<std::string>{});
  config.lr_scheduler->decay_ratio = 0.75;
  CHECK_EQ(ScheduleWarnings(config),
           std::vector<std::string>{"lr_scheduler.decay_ratio 0.75 asks for 3 of 4 steps, and the "
                                    "warm-up leaves 2: so many decay"});
  config.lr_scheduler = LrSchedulerConfig{.warmup_steps = 200, .total_steps = 4};
  CHECK_EQ(ScheduleWarnings(config),
           std::vector<std::string>{"lr_scheduler.warmup_steps 200 are more than the 4 steps: all "
                                    "of them warm up"});
}

TEST_CASE("after the schedule's end the rate stays at its least") {
  const LrSchedulerConfig config{.warmup_steps = 0, .total_steps = 4, .min_lr_factor = 0.1};
  CHECK_EQ(LearningRateFactor(config, 400), 0.1);
}

TEST_CASE("without a schedule the rate is constant") {
  TrainConfig config;
  config.optimizer.lr = 0.25;
  CHECK_EQ(LearningRate(config, 7), 0.25);
  config.lr_scheduler = LrSchedulerConfig{.warmup_steps = 4, .total_steps = 8};
  CHECK_EQ(LearningRate(config, 0), 0.0625);
}

}  // namespace
}  // namespace strata

#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// What a training prints, on a terminal or not:
///
///     step       loss  grad_norm         lr   tokens/s      GiB        s
///        1   5.560013   1.953213 8.0000e-04     4801.2     0.31     0.11
///
/// `tokens/s` are those since the line before, `GiB` is the memory of the process, or on a GPU the
/// most that it took there, `s` the seconds since the first step began.
class TrainTable {
 public:
  static Result<TrainTable> Create();

  /// To be called after each step; prints a line every `metrics.log_freq` of them.
  Status Add(const StepReport& report, const Trainer& trainer);
  /// Whether `Add` will print a line for the step.
  static bool IsDue(int64_t step, const TrainConfig& config) {
    return step == 1 || step % config.metrics.log_freq == 0;
  }
  /// For a line of progress: `loss 5.21  12.3k tokens/s  1.20 GiB  0:03:10 left`, over all steps of
  /// this run. REQUIRES: a step was added.
  std::string Progress(const Trainer& trainer) const;
  Status Finish() { return out_.Commit(); }

 private:
  using Clock = std::chrono::steady_clock;

  explicit TrainTable(AtomicFile out);
  double SecondsSince(Clock::time_point from) const;

  AtomicFile out_;
  int64_t steps_ = 0;      // added
  bool has_head_ = false;  // an error before the first step needs no table
  StepReport last_;
  int64_t tokens_ = 0, tokens_of_line_ = 0;
  Clock::time_point start_ = Clock::now(), line_ = start_, now_ = start_;
};

}  // namespace strata::cli

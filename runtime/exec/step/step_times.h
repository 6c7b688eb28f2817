#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "runtime/plan/plan.h"

namespace strata {

/// When each step of a run ended, read from the processor's counter: a few nanoseconds a step, one
/// write to memory allocated before. The steady clock times the run as a whole, which gives the
/// length of a tick.
class StepTimes {
 public:
  /// The run begins. `steps`: those that `Mark` is called after, in order.
  void Begin(std::span<const StepId> steps) {
    steps_ = steps;
    ends_.resize(steps.size() + 1);
    next_ = ends_.data();
    start_ = std::chrono::steady_clock::now();
    Mark();
  }
  void Mark() { *next_++ = Ticks(); }
  void End() { wall_ = std::chrono::steady_clock::now() - start_; }
  /// Whether a run was timed since the last `Clear`.
  bool has_run() const { return next_ != nullptr; }
  void Clear() { next_ = nullptr; }

  std::span<const StepId> steps() const { return steps_; }
  /// Adds what each step took, in nanoseconds, to `sums`; steps().size() of them.
  void AddTo(std::span<double> sums) const {
    const auto ticks = static_cast<double>(ends_.back() - ends_.front());
    const double unit =
        ticks > 0.0 ? std::chrono::duration<double, std::nano>(wall_).count() / ticks : 0.0;
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += static_cast<double>(ends_[i + 1] - ends_[i]) * unit;
  }

 private:
  static uint64_t Ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  std::span<const StepId> steps_;
  std::vector<uint64_t> ends_;  // and before them the start
  uint64_t* next_ = nullptr;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::duration wall_{};
};

}  // namespace strata

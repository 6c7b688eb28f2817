#pragma once
#include <memory>
#include <utility>

namespace strata {

/// Time as the solver counts it: by what it has done, about as fast as on one core of a server.
/// Unlike the time of a clock it is the same on every machine and in every run, so that a limit
/// always ends a search at the same place.
class WorkClock {
 public:
  static constexpr double kSecondsPerEntry = 1e-9;

  /// Entries of cost tables that were read or written.
  void Count(double entries) { entries_ += entries; }
  double seconds() const { return entries_ * kSecondsPerEntry; }

 private:
  double entries_ = 0;
};

/// The work that was counted since this was made.
class WorkWatch {
 public:
  explicit WorkWatch(std::shared_ptr<const WorkClock> clock)
      : clock_(std::move(clock)), start_(clock_->seconds()) {}
  double seconds() const { return clock_->seconds() - start_; }

 private:
  std::shared_ptr<const WorkClock> clock_;
  double start_;
};

}  // namespace strata

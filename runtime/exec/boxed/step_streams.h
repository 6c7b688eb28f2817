#pragma once
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/device/schedule.h"
#include "runtime/plan/plan.h"

namespace strata {

/// Errors of a device pass through operators' code as what those throw.
void ThrowUnlessOk(const Status& status);

/// Puts the steps of a run on the streams that they are annotated with, and orders these by events.
/// Exceptions: errors of the device.
class StepStreams {
 public:
  /// REQUIRES: the device outlives the streams.
  StepStreams(const Plan& plan, Device& device);

  void Begin();  ///< of a run
  void Enter(StepId index, const PlanStep& step);
  void Leave(StepId index);
  void Join();  ///< at the end of a run: stream 0 waits for the others

  const DeviceSchedule& schedule() const { return schedule_; }

 private:
  void SwitchTo(int32_t stream);

  Device& device_;
  DeviceSchedule schedule_;
  int32_t current_ = 0;
  size_t next_fork_ = 0;
};

}  // namespace strata

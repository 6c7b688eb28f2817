#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/device/streams.h"
#include "runtime/plan/plan.h"

namespace strata {

/// How a plan's steps run on the streams that they are annotated with.
struct DeviceSchedule {
  StreamPlan streams;
  IdVector<StepId, int32_t> events;  ///< number of each step's event; -1: none is recorded
  int32_t start_event = -1;  ///< recorded before the first step; -1: no side stream begins there
  /// Slots whose tensors go after the step: those that it kills, unless another stream still reads
  /// their memory.
  IdVector<StepId, std::vector<SlotId>> releases;
  std::vector<SlotId> last_releases;  ///< slots whose tensors go at the end of the run
};

/// Orders what reads after what wrote, and what writes after what read or wrote the same memory,
/// views included, and lets memory go when its stream's allocator may reuse it.
DeviceSchedule ScheduleOnDevice(const Plan& plan);

/// What `ScheduleOnDevice` orders. A collective also begins after what computes before it in the
/// plan, as with PyTorch's process groups: otherwise collectives would run ahead as far as operands
/// allow, and hold the memory of all their results.
std::vector<StreamStep> StreamStepsOf(const Plan& plan);

/// By input: whether a run writes to its memory.
std::vector<bool> WrittenInputs(const Plan& plan);

}  // namespace strata

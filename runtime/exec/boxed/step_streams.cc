#include "runtime/exec/boxed/step_streams.h"

#include <c10/util/Exception.h>

namespace strata {

void ThrowUnlessOk(const Status& status) {
  TORCH_CHECK(status.has_value(), status.has_value() ? "" : status.error().message());
}

StepStreams::StepStreams(const Plan& plan, Device& device)
    : device_(device), schedule_(ScheduleOnDevice(plan)) {}

void StepStreams::Begin() {
  next_fork_ = 0;
  current_ = 0;
  if (schedule_.start_event >= 0) ThrowUnlessOk(device_.Record(schedule_.start_event));
}

void StepStreams::SwitchTo(int32_t stream) {
  if (stream == current_) return;
  ThrowUnlessOk(device_.UseStream(stream));
  current_ = stream;
}

void StepStreams::Enter(StepId index, const PlanStep& step) {
  if (step.is_view) return;
  SwitchTo(step.stream);
  const StreamPlan& streams = schedule_.streams;
  if (next_fork_ < streams.forks.size() && streams.forks[next_fork_] == index.index) {
    ThrowUnlessOk(device_.Wait(schedule_.start_event));
    ++next_fork_;
  }
  for (const int32_t wait : streams.waits[static_cast<size_t>(index.index)])
    ThrowUnlessOk(device_.Wait(schedule_.events[StepId{wait}]));
}

void StepStreams::Leave(StepId index) {
  if (schedule_.events[index] >= 0) ThrowUnlessOk(device_.Record(schedule_.events[index]));
}

void StepStreams::Join() {
  SwitchTo(0);
  for (const int32_t step : schedule_.streams.joins)
    ThrowUnlessOk(device_.Wait(schedule_.events[StepId{step}]));
}

}  // namespace strata

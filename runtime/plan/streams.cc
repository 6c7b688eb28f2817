#include "runtime/plan/streams.h"

#include <algorithm>

namespace strata {
namespace {

/// By stream: the last step of it that is known to be done.
using Clock = std::vector<int32_t>;

void Learn(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

class Assigner {
 public:
  explicit Assigner(std::span<const StreamStep> steps) : steps_(steps) {
    size_t num_streams = 1;
    for (const StreamStep& step : steps)
      num_streams = std::max(num_streams, static_cast<size_t>(step.stream) + 1);
    now_.assign(num_streams, Clock(num_streams, -1));
    plan_.waits.resize(steps.size());
    plan_.records.assign(steps.size(), false);
  }

  StreamPlan Run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto stream = static_cast<size_t>(steps_[i].stream);
      plan_.waits[i] = WaitFor(stream, steps_[i].after);
      now_[stream][stream] = static_cast<int32_t>(i);
      done_.push_back(now_[stream]);
    }
    std::vector<int32_t> lasts;
    for (size_t stream = 1; stream < now_.size(); ++stream) {
      if (now_[stream][stream] >= 0) lasts.push_back(now_[stream][stream]);
    }
    plan_.joins = WaitFor(0, lasts);
    plan_.num_events = static_cast<int32_t>(std::ranges::count(plan_.records, true));
    return std::move(plan_);
  }

 private:
  size_t StreamOf(int32_t step) const {
    return static_cast<size_t>(steps_[static_cast<size_t>(step)].stream);
  }

  /// Latest first: what a later step knows need not be waited for.
  std::vector<int32_t> WaitFor(size_t stream, std::vector<int32_t> steps) {
    std::ranges::sort(steps, std::ranges::greater());
    std::vector<int32_t> waits;
    Clock& clock = now_[stream];
    for (const int32_t step : steps) {
      if (clock[StreamOf(step)] >= step) continue;
      waits.push_back(step);
      plan_.records[static_cast<size_t>(step)] = true;
      Learn(clock, done_[static_cast<size_t>(step)]);
    }
    std::ranges::sort(waits);
    return waits;
  }

  std::span<const StreamStep> steps_;
  std::vector<Clock> now_;   // by stream
  std::vector<Clock> done_;  // by step: what is done when it is
  StreamPlan plan_;
};

}  // namespace

StreamPlan AssignEvents(std::span<const StreamStep> steps) {
  return Assigner(steps).Run();
}

}  // namespace strata

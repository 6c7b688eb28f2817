#include "runtime/plan/device/streams.h"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

constexpr int32_t kStart = -1;  // what stream 0 did before the first step
constexpr int32_t kNothing = -2;

/// By stream: the last step of it that is known to be done.
using Clock = std::vector<int32_t>;

void Learn(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

size_t NumStreams(std::span<const StreamStep> steps) {
  size_t num_streams = 1;
  for (const StreamStep& step : steps)
    num_streams = std::max(num_streams, static_cast<size_t>(step.stream) + 1);
  return num_streams;
}

/// Numbers streams anew, in their order and without gaps: a clock has a place for each.
class StreamNumbers {
 public:
  explicit StreamNumbers(std::span<const StreamStep> steps) {
    for (const StreamStep& step : steps)
      used_.push_back(step.stream);
    std::ranges::sort(used_);
    used_.erase(std::ranges::unique(used_).begin(), used_.end());
  }
  /// 0 stays 0; a stream without steps is one more than all others.
  int32_t Of(int32_t stream) const {
    if (stream == 0) return 0;
    const auto place = std::ranges::lower_bound(used_, stream);
    const bool is_used = place != used_.end() && *place == stream;
    const bool has_first = !used_.empty() && used_.front() == 0;
    return static_cast<int32_t>((is_used ? place : used_.end()) - used_.begin()) +
           (has_first ? 0 : 1);
  }
  std::vector<StreamStep> Apply(std::span<const StreamStep> steps) const {
    std::vector<StreamStep> numbered(steps.begin(), steps.end());
    for (StreamStep& step : numbered)
      step.stream = Of(step.stream);
    return numbered;
  }

 private:
  std::vector<int32_t> used_;  // ascending
};

/// What each stream knows, while steps are issued one after the other.
class Clocks {
 public:
  explicit Clocks(std::span<const StreamStep> steps)
      : steps_(steps), now_(NumStreams(steps), Clock(NumStreams(steps), kNothing)) {
    now_[0][0] = kStart;
  }

  bool Knows(size_t stream, int32_t step) const { return now_[stream][StreamOf(step)] >= step; }
  bool HasBegun(size_t stream) const { return now_[stream][0] >= kStart; }
  void Wait(size_t stream, int32_t step) { Learn(now_[stream], done_[static_cast<size_t>(step)]); }
  void WaitForStart(size_t stream) { now_[stream][0] = std::max(now_[stream][0], kStart); }
  void Issue(size_t stream) {
    now_[stream][stream] = static_cast<int32_t>(done_.size());
    done_.push_back(now_[stream]);
  }
  /// Last step of the stream so far, negative if there is none.
  int32_t Last(size_t stream) const { return now_[stream][stream]; }
  size_t num_streams() const { return now_.size(); }

 private:
  size_t StreamOf(int32_t step) const {
    return static_cast<size_t>(steps_[static_cast<size_t>(step)].stream);
  }

  std::span<const StreamStep> steps_;
  std::vector<Clock> now_;   // by stream
  std::vector<Clock> done_;  // by step: what is done when it is
};

class Assigner {
 public:
  explicit Assigner(std::span<const StreamStep> steps) : steps_(steps), clocks_(steps) {
    plan_.waits.resize(steps.size());
    plan_.records.assign(steps.size(), false);
  }

  StreamPlan Run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto stream = static_cast<size_t>(steps_[i].stream);
      plan_.waits[i] = WaitFor(stream, steps_[i].after);
      if (!clocks_.HasBegun(stream)) {
        plan_.forks.push_back(static_cast<int32_t>(i));
        clocks_.WaitForStart(stream);
      }
      clocks_.Issue(stream);
    }
    std::vector<int32_t> lasts;
    for (size_t stream = 1; stream < clocks_.num_streams(); ++stream) {
      if (clocks_.Last(stream) >= 0) lasts.push_back(clocks_.Last(stream));
    }
    plan_.joins = WaitFor(0, lasts);
    plan_.num_events = static_cast<int32_t>(std::ranges::count(plan_.records, true)) +
                       (plan_.forks.empty() ? 0 : 1);
    return std::move(plan_);
  }

 private:
  /// Latest first: what a later step knows need not be waited for.
  std::vector<int32_t> WaitFor(size_t stream, std::vector<int32_t> steps) {
    std::ranges::sort(steps, std::ranges::greater());
    std::vector<int32_t> waits;
    for (const int32_t step : steps) {
      if (clocks_.Knows(stream, step)) continue;
      waits.push_back(step);
      plan_.records[static_cast<size_t>(step)] = true;
      clocks_.Wait(stream, step);
    }
    std::ranges::sort(waits);
    return waits;
  }

  std::span<const StreamStep> steps_;
  Clocks clocks_;
  StreamPlan plan_;
};

}  // namespace

StreamPlan AssignEvents(std::span<const StreamStep> steps) {
  return Assigner(StreamNumbers(steps).Apply(steps)).Run();
}

std::vector<int32_t> PlanReleases(std::span<const StreamStep> given, const StreamPlan& plan,
                                  std::span<const StreamMemory> memory) {
  const StreamNumbers numbers(given);
  const std::vector<StreamStep> steps = numbers.Apply(given);
  std::vector<int32_t> releases(memory.size(), static_cast<int32_t>(steps.size()));
  // Pieces of each stream that still wait, by the last step that uses them.
  std::vector<std::vector<size_t>> waiting(NumStreams(steps) + 1);
  std::vector<std::vector<size_t>> ends(steps.size());
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!memory[i].used_by.empty())
      ends[static_cast<size_t>(std::ranges::max(memory[i].used_by))].push_back(i);
  }
  Clocks clocks(steps);
  size_t next_fork = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto stream = static_cast<size_t>(steps[i].stream);
    for (const int32_t wait : plan.waits[i])
      clocks.Wait(stream, wait);
    if (next_fork < plan.forks.size() && plan.forks[next_fork] == static_cast<int32_t>(i)) {
      clocks.WaitForStart(stream);
      ++next_fork;
    }
    clocks.Issue(stream);
    for (const size_t piece : ends[i])
      waiting[static_cast<size_t>(numbers.Of(memory[piece].stream))].push_back(piece);
    // Only this stream has learnt something.
    std::erase_if(waiting[stream], [&](size_t piece) {
      const bool is_safe = std::ranges::all_of(
          memory[piece].used_by, [&](int32_t use) { return clocks.Knows(stream, use); });
      if (is_safe) releases[piece] = static_cast<int32_t>(i);
      return is_safe;
    });
  }
  return releases;
}

}  // namespace strata

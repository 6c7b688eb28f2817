#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// A step as its order on a device needs it.
struct StreamStep {
  int32_t stream = 0;
  std::vector<int32_t> after;  ///< earlier steps whose effects it needs, on any stream
};

/// What streams wait for. Steps of one stream run in their order; across streams, a step runs after
/// the events that it waits for, which are recorded right after a step of another stream.
struct StreamPlan {
  std::vector<std::vector<int32_t>> waits;  ///< by step: steps whose events it waits for, ascending
  std::vector<bool> records;                ///< by step: an event is recorded after it
  /// Steps that wait for an event recorded on stream 0 before the first step: those with which a
  /// side stream begins, unless something that they wait for comes after that, too.
  std::vector<int32_t> forks;
  /// Steps whose events stream 0 waits for at the end: the last of side streams.
  std::vector<int32_t> joins;
  int32_t num_events = 0;  ///< recorded in a run, that before the first step included
};

/// Orders all that `after` asks for, all steps after what stream 0 did before, and what stream 0
/// does next after all steps, as the begin and end of a capture require. Nothing else is ordered:
/// among the plans of which that is true this has the fewest events and the fewest waits, for it
/// waits only where neither the order within a stream, nor an earlier wait of the stream, nor what
/// the awaited step had itself waited for already orders. REQUIRES: `after` names earlier steps.
StreamPlan AssignEvents(std::span<const StreamStep> steps);

/// Who uses a piece of memory.
struct StreamMemory {
  int32_t stream = 0;            ///< whose allocator gave it, and gets it back
  std::vector<int32_t> used_by;  ///< steps
};

/// For each piece of memory the step after whose launch it may go back to its stream's allocator,
/// which hands it out again to later steps of that stream without waiting: the first from which on
/// the stream has waited for all uses. Costs no event. `steps.size()`: at the end of the run.
std::vector<int32_t> PlanReleases(std::span<const StreamStep> steps, const StreamPlan& plan,
                                  std::span<const StreamMemory> memory);

}  // namespace strata

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
  std::vector<int32_t>
      joins;  ///< steps whose events stream 0 waits for at the end: the last of others
  int32_t num_events = 0;
};

/// Orders all that `after` asks for, with an event only where nothing else orders it already: not
/// the order within a stream, not an earlier wait of the stream, not what the awaited step had
/// itself waited for. No event and no wait can be left out. All streams are joined into stream 0 at
/// the end, as the end of a capture requires. REQUIRES: `after` names earlier steps.
StreamPlan AssignEvents(std::span<const StreamStep> steps);

}  // namespace strata

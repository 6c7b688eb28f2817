#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/simulate/node_cost.h"

namespace strata {

/// What one stream does from `start_us` to `end_us`.
struct TimelineEvent {
  NodeId node;
  int32_t stream = 0;  ///< index in Timeline::streams
  double start_us = 0, end_us = 0;
  bool is_idle = false;  ///< computation waits for the collective whose wait is `node`
};

/// What the collectives of one group do.
struct GroupUse {
  std::string group;
  int64_t count = 0;
  double bytes = 0;
  double busy_us = 0;     ///< from start to end, while links may be shared
  double exposed_us = 0;  ///< while computation waits for one
};

/// The estimated execution of the graph of one rank.
struct Timeline {
  std::vector<std::string> streams;   ///< "compute", then one for each group, by first use
  std::vector<TimelineEvent> events;  ///< in order of their start, on each stream
  std::vector<GroupUse> groups;       ///< in order of `streams`
  double step_us = 0;
  double compute_us = 0;  ///< busy

  double busy_us() const;     ///< of all groups
  double exposed_us() const;  ///< of all groups
};

/// Replays a graph in program order. Computation is one stream; each group of ranks has a stream
/// for its collectives, in order of their launches. A collective starts when computation has
/// reached its launch and the one before it on its stream has ended; a wait stops computation until
/// its collective has ended. Collectives that run at the same time and use the same kind of link,
/// within nodes or between them, share it evenly. Every rank does the same at the same time.
///
/// Errors: those of NodeCost::CollectiveUs.
Result<Timeline> Simulate(const Graph& graph, const NodeCost& cost);

}  // namespace strata

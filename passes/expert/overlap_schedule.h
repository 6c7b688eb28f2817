#pragma once
#include <vector>

#include "base/result.h"
#include "passes/expert/overlap_region.h"

namespace strata {

/// An order for the nodes of one region in which exchanges of tokens hide behind work of the other
/// chunks.
struct OverlapSchedule {
  /// Every node of the region once. A block runs after the blocks before it, and the nodes of a
  /// block run in its order.
  std::vector<std::vector<size_t>> blocks;
  /// Copies of counts to the host that need not block, as a later copy of the same stream does.
  std::vector<size_t> non_blocking;
};

/// The closure of a marker is what must run to launch it. Round i emits the closures of the i-th
/// markers of all chunks, chunk by chunk, and then whatever is ready and no communication. With
/// `pair_first` the first round launches only when all chunks have computed what they send: all
/// first exchanges are then in flight together. What is left, waits included, comes last.
/// Cost is linear in nodes and edges, but for sorting.
/// Errors: exchanges that depend on later ones of their chunk; copies of counts that do not come in
/// pairs; nodes that no order has.
/// Source: torchtitan's ep_overlap_pass.
Result<OverlapSchedule> ScheduleOverlap(const Graph& graph, const OverlapRegion& region,
                                        bool pair_first);

}  // namespace strata

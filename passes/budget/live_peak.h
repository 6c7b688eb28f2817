#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// Bytes that a graph holds at its peak beside its inputs and constants: what lives from its node
/// to the last one that reads it or a view of it, each value in units of 64 bytes. What is
/// offloaded counts as nothing while it is there; sizes that are not known count as nothing, too.
/// A memory planner that leaves no gaps and shares no operands needs as much.
int64_t LivePeakBytes(const Graph& graph);
/// The same if its nodes run in another order: `position` is the place of each node.
int64_t LivePeakBytes(const Graph& graph, const IdVector<NodeId, int32_t>& position);

/// Bytes of the storage that a value owns, in units of 64; 0 for views, for inputs and constants,
/// and for what is on the host.
int64_t OwnLiveBytes(const Graph& graph, ValueId value);

}  // namespace strata

#pragma once
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/rewriter.h"
#include "passes/expert/execution_order.h"
#include "passes/expert/overlap_region.h"
#include "passes/simulate/node_cost.h"

namespace strata {

/// Where a region splits what another one has just concatenated, it reads the chunks themselves:
/// chunks then depend on each other in no layer. Concatenations that nothing reads any more go.
/// Values stay as they are. Returns how many splits went.
size_t JoinChunkLanes(Rewriter& rewriter);

/// All nodes in an order in which, by the cost model, exchanges of tokens are hidden behind the
/// work of other chunks, also of other layers. It replays the graph as Simulate does, but for links
/// that collectives share: an exchange is launched as soon as it can be, and awaited when it has
/// ended, or later where computation takes longer than all exchanges: estimates err. Until then
/// computation does, in this order,
///
/// 1. what the next exchange of a chunk needs, of the chunk that has launched fewest;
/// 2. other work that is ready, oldest first: shared experts, gradients of parameters.
///
/// No region begins more than two regions ahead of the oldest one with work left, and none of
/// backward before all of forward have ended: what is recomputed would be kept meanwhile.
/// Inputs come first, in their order. Nodes of no chunk keep their order among those that are
/// ready, and run when a chunk has come as far in the program. Cost is linear in nodes and edges,
/// but for sorting. REQUIRES: `order` is that of `graph` as it is. Errors: those of
/// NodeCost::CollectiveUs.
Result<std::vector<NodeId>> OrderByCost(const Graph& graph, const ExecutionOrder& order,
                                        const std::vector<ChunkBodies>& bodies,
                                        const NodeCost& cost);

}  // namespace strata

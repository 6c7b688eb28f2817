#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "diff/model/graph_diff.h"

namespace strata {

/// How a joint graph was divided into a forward and a backward graph. Nodes of the joint graph, in
/// its order; inputs and outputs only in `saved`.
struct Partition {
  std::vector<EntityId> forward_only, backward_only;
  std::vector<EntityId> both;     ///< forward computes them, and backward again
  std::vector<EntityId> neither;  ///< no result depends on them
  std::vector<EntityId> saved;    ///< forward has them, and backward reads them as inputs
};

/// REQUIRES: both diffs have the joint graph before; `forward` has the forward graph after,
/// `backward` the backward graph.
Partition FindPartition(const GraphDiff& forward, const GraphDiff& backward);

struct PartitionRefs {
  std::string_view joint, forward, backward;
};
/// Counts, and the names of saved and recomputed nodes; with `all` those of every list.
std::string PartitionText(const GraphDiff& forward, const GraphDiff& backward,
                          const PartitionRefs& refs, bool all);
/// `strata.partition/1` (docs/json.md), with a line break at the end.
std::string PartitionJson(const GraphDiff& forward, const GraphDiff& backward,
                          const PartitionRefs& refs);

}  // namespace strata

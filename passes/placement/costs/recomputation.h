#pragma once
#include <set>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/memory/tag_memory.h"

namespace strata {

/// What a memory policy does with the results of forward, which a search for placements counts.
struct Recomputation {
  std::set<NodeId> recomputed;  ///< forward nodes that backward computes again
  std::vector<ValueId> saved;   ///< storages that forward leaves for backward
  std::vector<ValueId> again;   ///< those of the last layer that its backward computes again
};

/// Of the step `graph`, which `tag-memory` and `recompute` did not see. Errors: those of the
/// passes.
Result<Recomputation> RecomputationOf(const Graph& graph, TagMemory::Policy policy);

}  // namespace strata

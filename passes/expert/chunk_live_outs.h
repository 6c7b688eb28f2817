#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "passes/expert/chunk_context.h"
#include "passes/expert/chunk_regions.h"
#include "passes/expert/gradient_boundaries.h"

namespace strata {

/// A region whose body has its copies.
struct RegionCopies {
  std::unordered_map<ValueId, std::vector<ValueId>> values;  ///< by value of chunk 0
  std::unordered_map<ValueId, TypeId> types;                 ///< before
  std::unordered_set<NodeId> chained;  ///< nodes that write shared memory, one chunk after another
};

/// Gives what a copied region computes to those who read it: chunk by chunk to the backward region
/// of the same root, as a whole to everybody else.
Status LowerLiveOuts(ChunkContext& context, const ChunkPlan& plan, const ChunkRegion& region,
                     const GradientBoundaries& gradients, const RegionCopies& copies);

}  // namespace strata

#pragma once
#include <string>

#include "base/result.h"
#include "passes/expert/chunk_context.h"
#include "passes/expert/chunk_regions.h"

namespace strata {

/// "graph step: layers.3.moe, backward", for messages.
std::string Where(const ChunkContext& context, const ChunkRegion& region);

/// What no region may have: a sequence that attention needs whole, collectives other than those of
/// experts, random numbers, writes to an operand that is split, reads of shared memory beside its
/// writer, bodies of other graphs with chunked sizes. REQUIRES: the region is not lowered.
Status CheckRegion(const ChunkContext& context, const ChunkRegion& region);

/// A list of sizes among the arguments does not state a size of the whole as a number.
/// REQUIRES: the node is not lowered.
Status CheckShapeArguments(const ChunkContext& context, NodeId node);

/// Each user of a chunk is of the same chunk, or puts the whole together. After all regions.
Status CheckChunksStayInside(const Graph& graph);

bool HasEqualStrides(const DimTable& dims, const Type& a, const Type& b);
bool IsContiguous(const DimTable& dims, const Type& type);

}  // namespace strata

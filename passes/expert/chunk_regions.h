#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/expert/chunk_roots.h"
#include "passes/expert/chunk_symbols.h"
#include "passes/expert/gradient_boundaries.h"

namespace strata {

/// Nodes that run once per chunk: of one module, forward or backward.
struct ChunkRegion {
  StrId root;
  bool is_backward = false;
  std::vector<NodeId> body;  ///< in program order
};

/// The chunks of a value, where it was cut already.
using ChunkCopies = std::unordered_map<ValueId, std::vector<ValueId>>;

struct ChunkPlan {
  std::vector<ChunkRegion> regions;     ///< in order of their first nodes
  IdVector<NodeId, int32_t> region_of;  ///< an index of `regions`, or -1

  /// The region of a node; null: none.
  const ChunkRegion* Find(NodeId node) const {
    if (!IdsOf(region_of).Contains(node) || region_of[node] < 0) return nullptr;
    return &regions[static_cast<size_t>(region_of[node])];
  }
};

/// What of each root must run once per chunk, in either direction:
///
/// 1. nodes of the module, and backward nodes without a module between them,
/// 2. that depend on what is cut: tensors with a chunked dimension, chunks of other regions;
/// 3. shapes and tensors made from shapes that only these nodes read;
/// 4. of these, what something outside depends on, without what follows gradient boundaries.
///
/// Integers of the program stay outside: chunks have the numbers as literals. Cost is linear.
/// Errors: a forward node of a root reads what backward computed.
Result<ChunkPlan> PlanChunks(const Graph& graph, const ChunkRoots& roots,
                             const ChunkSymbols& symbols, const GradientBoundaries& gradients,
                             const ChunkCopies& copies);

/// A user that matters: it has users itself, or writes memory, or is the output.
bool IsSemanticUser(const Graph& graph, NodeId user);

/// A call whose results are integers that follow from sizes known before the program runs, or
/// outside of regions: in a chunk it is a literal.
bool IsSizeComputation(const Graph& graph, NodeId node, const ChunkSymbols& symbols);

}  // namespace strata

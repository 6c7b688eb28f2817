#pragma once
#include <cstddef>
#include <functional>
#include <optional>

#include "ir/graph.h"

namespace strata::prove {

// What the pass `ep-chunk` (passes/expert/ep_chunk.h) leaves of a value: chunks, of which the first
// one keeps the identity of the whole, and nodes that join them.

/// The node of the graph before the pass that has an identity; none: the graph has none.
using OriginalOf = std::function<NodeId(StableId)>;

/// Whether `node` computes a part of what `original` computes in `before`: a chunk that the pass
/// made.
bool IsNewChunk(const Graph& before, NodeId original, const Graph& after, NodeId node);

/// A result of a node of the graph before the pass.
struct WholeValue {
  NodeId original;
  size_t result;
};

/// The whole that `node` joins from chunks: that of which the first chunk is a part. None: it joins
/// none.
std::optional<WholeValue> JoinedWhole(const Graph& before, const Graph& after, NodeId node,
                                      const OriginalOf& original_of);

}  // namespace strata::prove

#pragma once
#include <cstddef>
#include <optional>

#include "ir/graph.h"

namespace strata {

/// `chunk(x, 4)[rank]`: a node splits a tensor and one of the parts is used, or a node is the
/// `getitem` that takes this part. Which one, differs from rank to rank.
bool TakesOneShard(const Graph& graph, NodeId node);

/// What a concatenation puts between zeros: the gradient of one part of a split tensor.
struct ShardPlace {
  ValueId shard;
  size_t position = 0;  ///< among the parts
};
/// None for other nodes.
std::optional<ShardPlace> PlaceOfShard(const Graph& graph, NodeId node);

}  // namespace strata

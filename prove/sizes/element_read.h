#pragma once
#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace strata::prove {

/// A number that is an element of a vector: `_local_scalar_dense(select(vector, 0, index))`.
struct ElementRead {
  ValueId vector;
  NodeId select;
  int64_t index = 0;
};

/// What the node reads; none: it is another node.
std::optional<ElementRead> ElementReadBy(const Graph& graph, NodeId node);

}  // namespace strata::prove

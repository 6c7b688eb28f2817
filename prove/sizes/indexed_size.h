#pragma once
#include <cstdint>
#include <optional>

#include "ir/graph.h"
#include "prove/sizes/graph_sizes.h"

namespace strata::prove {

/// The size of the dimension that integers index which `node` has a part in: in
/// `embedding(weight, clamp(tokens - begin, 0, 255))` that of the weight's rows, for each of the
/// nodes that make its indices. Else that of positions which they are compared with, as in
/// `arange(256) + 256 * rank`. None: no such dimension has this size.
std::optional<SizeId> IndexedSize(const GraphSizes& sizes, NodeId node, int64_t number,
                                  const SizeConstraints& constraints);

}  // namespace strata::prove

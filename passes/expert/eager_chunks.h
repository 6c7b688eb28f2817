#pragma once
#include "ir/graph.h"

namespace strata {

/// Labels sums of the gradients of several chunks as `ep-chunk` does. Autograd makes them where a
/// program calls a module once per chunk, and knows nothing of chunks.
/// Linear in the graph.
void LabelChunkSums(Graph& graph);

}  // namespace strata

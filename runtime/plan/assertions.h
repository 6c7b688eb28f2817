#pragma once
#include "ir/graph.h"

namespace strata {

/// Assertions about sizes, and comparisons that nothing but these reads: they are not executed.
/// Sizes are checked where they are used.
bool OnlyAsserts(const Graph& graph, NodeId node);

}  // namespace strata

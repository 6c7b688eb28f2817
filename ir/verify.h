#pragma once
#include "base/result.h"
#include "ir/module.h"

namespace strata {

/// Checks the invariants that every graph must hold between passes: the order list is sound,
/// operands are defined before use and in the same graph, use lists agree with arguments, names are
/// unique, the output is last and single, types have as many strides as sizes, aliases share a
/// device and are defined earlier, referenced graphs exist. The error names graph, node and rule.
Status Verify(const Graph& graph);
/// Every graph, and `CheckBodies`.
Status Verify(const Module& module);

/// Bodies nest at most this deep. What walks them may recurse.
inline constexpr int kMaxBodyDepth = 64;

/// No graph contains itself, none nests deeper than `kMaxBodyDepth`. Readers of foreign bytes check
/// this before anything else looks at their graphs. REQUIRES: graphs that are referred to exist.
Status CheckBodies(const Module& module);

}  // namespace strata

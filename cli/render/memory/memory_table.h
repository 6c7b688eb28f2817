#pragma once
#include <cstddef>
#include <string>

#include "cli/render/memory/memory_front.h"
#include "ir/graph.h"

namespace strata::cli {

/// Peak, what is alive there, what forward leaves for backward, and sums of both by module and by
/// line; at most `shown` rows of each, 0 for all.
std::string MemoryText(const Graph& graph, size_t shown);

/// How the peak and the saved bytes of `before` and `after` differ, in all and by module and line.
std::string MemoryChangeText(const Graph& before, const Graph& after, size_t shown);

/// `strata.memory/1`; `before` and `front` may be null.
std::string MemoryJson(const Graph& graph, const Graph* before, const MemoryFront* front);

}  // namespace strata::cli

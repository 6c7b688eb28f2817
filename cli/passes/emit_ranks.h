#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph.h"

namespace strata::cli {

/// What `lower` writes where a rank needs its place in a group, or its part of a value;
/// assets/emit/ranks.py has functions for them.
inline constexpr std::string_view kAxisIndexOp = "strata.axis_index.default";
inline constexpr std::string_view kAxisShardOp = "strata.axis_shard.default";

/// Whether ranks run the graph together: `lower` wrote it.
bool IsOfSeveralRanks(const Graph& graph);

/// The values that assets/emit/ranks.py and run.py read of such a graph, as Python: the number of
/// ranks, the members of its groups, and how ranks hold its inputs and outputs.
/// Errors: a part of a graph, sizes that depend on symbols, a damaged mesh or placement.
Result<std::string> RanksPy(const Graph& graph);

}  // namespace strata::cli

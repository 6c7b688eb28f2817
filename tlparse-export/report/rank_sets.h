#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diff/graph/listing.h"
#include "ir/result.h"
#include "store/trace.h"

namespace strata {

/// Of each entity of a graph the ranks that have this node as it is here: "ranks 0–2, 5"; "" where
/// all have it. Empty when no other rank of the trace has this graph at this place, or all have the
/// same. `pass` is the pass that the graph comes out of; null: the graph as the run left it.
/// Ranks of equal graphs are compared once. `budget`: nodes that may still be compared, of both
/// sides; empty as well when it does not suffice.
Result<std::vector<std::string>> RankSetsOf(TraceReader& trace, const StoredRun& run,
                                            const std::string& graph, const StoredPass* pass,
                                            const Listing& listing, int64_t& budget);

}  // namespace strata

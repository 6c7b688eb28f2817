#pragma once
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "ir/graph.h"
#include "prove/call.h"

namespace strata::prove {

/// Whether a call bounds a number, as `clamp(max_norm / norm, max=1)` does, and its result is the
/// bound: then it does not depend on the number, and a wrong one stays hidden.
bool IsAtBound(const Call& call, const Values& results);

/// Whether the graph, or a body in it, bounds a number.
bool HasBounds(const Graph& graph);

/// `seed`, or one made of it for which numbers are not at their bounds: of the seeds that are
/// tried, the one with the fewest. `at_bound`: how many of a graph's numbers are at their bounds
/// with the inputs of a seed; an error ends the search.
uint64_t SeedInsideBounds(const Graph& graph, uint64_t seed,
                          const std::function<Result<int64_t>(uint64_t)>& at_bound);

/// How many numbers of a graph are at their bounds with the inputs of a seed.
Result<int64_t> BoundsReached(const Graph& graph, uint64_t seed);

}  // namespace strata::prove

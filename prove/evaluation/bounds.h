#pragma once
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "ir/graph.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Whether a call bounds a number, as `clamp(max_norm / norm, max=1)` does, and its result is the
/// bound: then it does not depend on the number, and a wrong one stays hidden.
bool IsAtBound(const Call& call, const Values& results);

/// Whether the graph, or a body in it, bounds a number.
bool HasBounds(const Graph& graph);

/// Evaluates a graph with the inputs of `seed`, or of one made of it for which numbers are not at
/// their bounds: of the seeds that are tried, the one with the fewest. `evaluate` returns how many
/// are; its last call is with the seed that is chosen. Errors: those of `evaluate` with this seed.
Status EvaluateInsideBounds(const Graph& graph, uint64_t seed,
                            const std::function<Result<int64_t>(uint64_t)>& evaluate);

}  // namespace strata::prove

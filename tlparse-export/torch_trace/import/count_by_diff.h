#pragma once
#include "base/result.h"
#include "ir/graph.h"
#include "store/trace.h"

namespace strata {

/// What a pass did, as a trace counts it, where StableIds identify nothing. Consequences of other
/// changes are changes of the graph too.
Result<ChangeCounts> CountByDiff(const Graph& before, const Graph& after);

}  // namespace strata

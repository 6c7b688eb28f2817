#pragma once
#include "scene/dot_worker.h"

namespace strata {

/// Asks Graphviz. Not safe beside other threads, and may crash: called in the worker process only.
/// REQUIRES: HasGraphviz().
DotPlaces PlaceWithDot(const LaneShape& shape);

}  // namespace strata

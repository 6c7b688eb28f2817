#pragma once
#include <string>

#include "base/id.h"
#include "base/result.h"
#include "diff/graph/listing.h"
#include "diff/history/history.h"

namespace strata {

/// The pass that made each node of a snapshot, by the listing of its graph; "": the graph came with
/// the node, or it changed between passes. By StableId where the history has them, else by diffs of
/// consecutive snapshots. Errors: a graph that cannot be loaded.
Result<IdVector<EntityId, std::string>> PassesThatMade(const History& history, int32_t snapshot);

}  // namespace strata

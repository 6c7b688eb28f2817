#pragma once
#include <span>
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Where the identities in a trace (StableIds, provenance records) and the structure of its graphs
/// contradict each other: a pass that moved an id to another node, or named the wrong ancestor.
/// Symmetric nodes are not a contradiction: structure must have more edges for its claim than the
/// ids have. Only the surroundings of nodes whose edges and ids do not go
/// together are matched by structure; elsewhere structure could not say anything else.
///
/// REQUIRES: `by_ids` was made with `stable_ids`, from `by_id`; the labels know synonyms.
std::vector<Contradiction> FindContradictions(const GraphDiff& by_ids, const Matching& by_id,
                                              std::span<const Provenance> provenance);

/// "by id it is mm_5, by structure mm_7".
std::string ToString(const GraphDiff& by_ids, const Contradiction& contradiction);

}  // namespace strata

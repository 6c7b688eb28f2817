#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/diff_eval/mutations/mutations.h"
#include "bench/diff_eval/scores/score.h"
#include "diff/model/graph_diff.h"

namespace strata::bench {

/// What a perfect diff says of a mutated graph.
struct Truth {
  GraphDiff diff;  ///< matched by StableId, with the fields and statuses of that matching
  std::vector<Relation> relations;
  std::vector<bool> touched_before, touched_after;  ///< changed, or next to a change
};

/// Where the mutation leaves a choice (which copy is the original), `claim` decides, so that any
/// right answer is right; without `choices` the lineage does.
Result<Truth> MakeTruth(const Module& before, const Module& after, const Lineage& lineage,
                        const GraphDiff& claim, bool choices = true);

/// Colours of nodes: equal ones are exchangeable, the graph looks the same from both.
std::vector<uint64_t> Orbits(const GraphDiff& diff, bool after_side);

}  // namespace strata::bench

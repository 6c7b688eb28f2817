#pragma once
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Relations between nodes that are not identical, from a finished matching: copies, merged equals,
/// inputs that became computations and the reverse, replaced regions. A deleted or inserted node is
/// in one relation at most. Claims only what edges prove: in doubt there is no relation.
std::vector<Relation> FindRelations(const Listing& before, const Listing& after,
                                    const Matching& matching);

}  // namespace strata

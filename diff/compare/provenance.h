#pragma once
#include <span>
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"
#include "ir/module.h"

namespace strata {

/// Relations from provenance records, exactly: copies of nodes that live on, and nodes that
/// were made from deleted ones, joined to whole replacements. Ancestors that neither graph has
/// (made and removed between them) are passed over to theirs. A node is in one relation at most.
///
/// REQUIRES: `matching` is by StableIds.
std::vector<Relation> RelationsOfProvenance(const Listing& before, const Listing& after,
                                            const Matching& matching,
                                            std::span<const Provenance> provenance);

}  // namespace strata

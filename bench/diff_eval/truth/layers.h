#pragma once
#include <utility>
#include <vector>

#include "bench/diff_eval/mutations/mutations.h"
#include "bench/diff_eval/truth/identity.h"
#include "diff/model/graph_diff.h"

namespace strata::bench {

/// Which of several equal layers was added or removed is undecidable. Where a diff keeps all layers
/// of the smaller side in order, its choice of them is right: the pairs by which it is, where they
/// are not those of the lineage.
std::vector<std::pair<EntityId, EntityId>> ChosenLayers(const Lineage& lineage,
                                                        const GraphDiff& claim,
                                                        const Identities& before,
                                                        const Identities& after);

}  // namespace strata::bench

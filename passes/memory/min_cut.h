#pragma once
#include <functional>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

/// The forward nodes whose results are saved, so that the saved bytes are least while backward can
/// compute everything else again from them and from the inputs.
///
/// A minimum cut between the inputs and backward, where cutting a node costs the bytes of its
/// results, times 1.1 for each node between it and backward: what is saved late is recomputed less.
/// Inputs are there anyway and cost nothing. Views are never saved: they follow what they view. A
/// tensor of data-dependent size counts as the largest of known size. `must_save`: nodes that are
/// not recomputed; what they compute is saved, or something that follows from it. Errors: backward
/// needs results of unknown type. Source: torch/_functorch/partitioners.py,
/// min_cut_rematerialization_partition.
Result<IdVector<NodeId, bool>> NodesToSave(const Graph& graph,
                                           const std::function<bool(NodeId)>& must_save);

}  // namespace strata

#pragma once
#include "ir/graph.h"
#include "prove/joined_stages.h"
#include "prove/proof.h"

namespace strata::prove {

/// Proves that graphs compute together what the graph does that they were cut out of: a training's
/// step or update, or a graph of one stage. Nodes that are copies of its nodes, losses, gradients,
/// further outputs and written inputs are compared, on each rank of its mesh. Findings name
/// `stage1.forward/mm_4`. Verdict and options as for ProvePass, but `stable_ids`, which follows
/// from `cut.originals`.
Proof ProveStages(const StageCut& cut, const ProofOptions& options);

/// Proves that a graph computes what `first` does and then what `second` does: its inputs and
/// outputs are theirs, those of `first` before those of `second`. `options.makers`: those of
/// `first`.
Proof ProveJoined(const Graph& joined, const Graph& first, const Graph& second,
                  const ProofOptions& options);

}  // namespace strata::prove

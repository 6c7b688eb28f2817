#pragma once
#include "ir/graph.h"
#include "prove/proof.h"

namespace strata::prove {

/// Proves that a pass on a lowered graph keeps what every rank of its mesh computes: both graphs
/// are evaluated on all ranks, with other inputs on each, and collectives read the operands of the
/// ranks of their group. Values of nodes with equal StableIds, outputs and written inputs are
/// compared on each rank. Findings name the first rank that differs.
///
/// Verdict and options as for Prove, which says what `proven` means. REQUIRES: both are lowered.
Proof ProveOnRanks(const Graph& before, const Graph& after, const ProofOptions& options);

}  // namespace strata::prove

#pragma once
#include "ir/graph.h"
#include "prove/proof.h"

namespace strata::prove {

/// The proof that fits the two graphs: that of lowering, on ranks, or on one.
Proof ProvePass(const Graph& before, const Graph& after, const ProofOptions& options);

}  // namespace strata::prove

#pragma once
#include "ir/graph.h"
#include "prove/proof.h"

namespace strata::prove {

/// Proves that a forward and a backward graph compute together what the joint graph does that they
/// were cut out of: AOTAutograd's partitioner. A backward graph's input has the name of the forward
/// value that it is, or of the joint graph's input: PyTorch keeps names.
Proof ProvePartition(const Graph& joint, const Graph& forward, const Graph& backward,
                     const ProofOptions& options);

}  // namespace strata::prove

#pragma once
#include "ir/graph.h"
#include "prove/proof.h"

namespace strata::prove {

/// Proves that the ranks of a mesh together compute what a placed graph computes. `placed`: values
/// are whole, types have placements; it is evaluated once. `lowered`: evaluated on all ranks, each
/// with its part of the inputs. A value that both graphs have is compared by its placement: parts
/// with the slices of the whole, replicas with the whole, the reduction of partial values with the
/// whole. Findings name the node and the relation that was expected. Values whose dimensions the
/// ranks do not divide evenly, and norms that are partial, are not compared; what reads them is.
///
/// Verdict and options as for Prove, which says what `proven` means.
Proof ProveLowering(const Graph& placed, const Graph& lowered, const ProofOptions& options);

}  // namespace strata::prove

#pragma once
#include <cstdint>
#include <span>

#include "ir/graph.h"
#include "prove/proof.h"

namespace strata::prove {

/// A graph of a pipeline stage, whose inputs and outputs have slots (passes/pipeline/slots.h).
struct StagePart {
  int64_t stage = 0;
  const Graph* graph = nullptr;
};

/// Proves that graphs of stages compute together what `whole` does that they were cut out of: a
/// training's step, or a graph of one stage, which has slots itself and is of `stage`. `parts` are
/// in an order in which they can run; each reads what slots of parts before it name, or inputs of
/// `whole`. Losses, gradients, further outputs and written inputs are compared, on each rank of the
/// mesh that shares the stages. Verdict and options as for Prove.
Proof ProveStages(const Graph& whole, int64_t stage, std::span<const StagePart> parts,
                  const ProofOptions& options);

/// Proves that a graph computes what `first` does and then what `second` does: its inputs and
/// outputs are theirs, those of `first` before those of `second`. `options.makers`: those of
/// `first`.
Proof ProveJoined(const Graph& joined, const Graph& first, const Graph& second,
                  const ProofOptions& options);

}  // namespace strata::prove

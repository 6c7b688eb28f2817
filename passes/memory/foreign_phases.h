#pragma once
#include "ir/graph.h"

namespace strata {

/// Gives the phase backward to nodes of a foreign graph that come after its first backward node and
/// that backward alone reads: transposes and casts of what forward saved. The texts of PyTorch do
/// not name phases, and readers know only what depends on gradients of outputs (ir/fx/fx.h);
/// AOTAutograd traces all of forward first. Nothing else changes.
void CompleteBackward(Graph& graph);

}  // namespace strata

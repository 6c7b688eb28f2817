#pragma once
#include <vector>

#include "ir/graph.h"

namespace strata {

/// Gives results without a type that which their operator computes from its operands, in program
/// order: sizes, element type and device, with contiguous strides. Results that have a type keep
/// it. A graph of PyTorch's that was written as a program has types of its inputs only.
///
/// Knows the operators of language models and their gradients, and collectives. Returns the calls
/// whose results stay unknown: operators without a rule, and those that read unknown values.
std::vector<NodeId> InferTypes(Graph& graph);

}  // namespace strata

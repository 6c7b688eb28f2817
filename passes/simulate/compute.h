#pragma once
#include "ir/graph.h"
#include "passes/simulate/expected_sizes.h"

namespace strata {

/// Whether a node is a matrix product, a convolution or an attention: an operator with a formula
/// for floating-point operations in torch.utils.flop_counter.
bool IsCompute(const Graph& graph, NodeId node);

/// Floating-point operations of a matrix product or attention; 0 for other operators and shapes of
/// which nothing is known. Masked scores of attention count.
/// Source: torch.utils.flop_counter.
double ProductFlops(const Graph& graph, NodeId node, const ExpectedSizes& expected);

/// The body of a kernel of fused nodes; null for any other node.
const Graph* KernelBodyOf(const Graph& graph, NodeId node);

}  // namespace strata

#pragma once
#include "ir/graph.h"

namespace strata {

/// Whether a node is a matrix product, a convolution or an attention: an operator with a formula
/// for floating-point operations in torch.utils.flop_counter.
bool IsCompute(const Graph& graph, NodeId node);

/// Floating-point operations of a matrix product or attention, under the hints of symbols; 0 for
/// other operators and unknown shapes. Masked scores of attention count.
/// Source: torch.utils.flop_counter.
double ProductFlops(const Graph& graph, NodeId node);

}  // namespace strata

#pragma once
#include "ir/graph.h"

namespace strata {

/// Floating point operations of a node, from shapes: multiplications and additions of matrix
/// products (also grouped and scaled ones), convolutions and attention, forward and backward;
/// everything else counts as nothing. Products of `[m, k]`
/// with `[k, n]` count 2mkn. Sizes that have no hint count as nothing.
/// Source of the formulas: torch/utils/flop_counter.py.
double FlopsOf(const Graph& graph, NodeId node);

/// Bytes that a node reads and writes, from shapes: its operands and results. Of views, of elements
/// of tuples and of waits none; unknown sizes count as nothing.
double BytesMovedBy(const Graph& graph, NodeId node);

/// Of a whole graph, without bodies.
double FlopsOf(const Graph& graph);

}  // namespace strata

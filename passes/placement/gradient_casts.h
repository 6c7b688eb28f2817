#pragma once
#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

/// Moves the cast of each gradient that the graph returns to where the gradient is complete, so
/// that it can be reduced there:
///
///   before  g1 = mm(…)  …  g0 = mm(…)  c1 = to_copy(g1)  c0 = to_copy(g0)  output(c1, c0)
///   after   g1 = mm(…)  c1 = to_copy(g1)  …  g0 = mm(…)  c0 = to_copy(g0)  output(c1, c0)
///
/// Autograd casts back what was cast first, parameters before the forward, after everything else.
void HoistGradientCasts(Rewriter& rewriter);

/// Whether a call casts a gradient to the wider type in which the graph returns it, and in which
/// ranks sum it up.
bool WidensGradient(const Graph& graph, NodeId node);

}  // namespace strata

#pragma once
#include <set>

#include "ir/graph.h"
#include "passes/expert/chunk_symbols.h"

namespace strata {

/// Where gradients of parameters, and counts, leave the chunks.
///
///   t = mm(x^T, g)    every chunk has its own: a boundary, the chunks' results are added here
///   r = reduce_scatter(t)   w = wait(r)   output(…, w)        run once, on the sum
///
/// A boundary is the first value on the way to an output that has no size of a chunk in it, and
/// behind which only linear operators of one operand follow. A cast is a boundary, too, as each
/// chunk rounds its own; but not the cast back of a parameter that was cast once for all chunks.
/// Integers summed over the tokens in forward are boundaries, too: counts of tokens.
/// Source: torchtitan's ep_chunk_pass; hazard: it walks through operators that are not linear, too.
struct GradientBoundaries {
  std::set<NodeId> boundaries;
  std::set<NodeId> suffix;  ///< what follows boundaries

  GradientBoundaries(const Graph& graph, const ChunkSymbols& symbols);
};

/// Integers summed over the tokens.
bool IsCount(const Graph& graph, NodeId node, const ChunkSymbols& symbols);

/// Whether `op` of a sum is the sum of `op`: no maximum, product or norm.
bool IsSumOverTokens(const Graph& graph, NodeId node);

}  // namespace strata

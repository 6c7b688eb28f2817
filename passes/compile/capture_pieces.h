#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// The nodes that run between the device graphs of a program that no device graph can hold whole,
/// in the order of nodes: what lies between two of them is captured. Empty: all can be captured.
///
///   - what has an obstacle (CudaGraphObstacle);
///   - collectives and their waits, with what only builds their buffers: launch and wait may lie in
///     different pieces, and a replayed wait knows no launch;
///   - what a pass put on a side stream, and what reads a number;
///   - what touches memory that an operator writes to, except that of parameters and state: pieces
///     copy their other inputs;
///   - runs between these of fewer than `min_nodes` nodes that compute.
///
/// Source: torchtitan PR 3548 (piecewise CUDA graphs).
std::vector<NodeId> NodesOutsideOfPieces(const Graph& graph, double capability, int64_t min_nodes);

}  // namespace strata

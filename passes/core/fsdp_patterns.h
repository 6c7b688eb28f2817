#pragma once
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

// How a sharded parameter becomes whole, and how its gradient is reduced:
//
//   linear    p → (cast | view)* → all_gather → wait → (view)* → consumer
//   fan-out   … wait → split → cat → (view)* → consumer
//   gradient  g → (cast | view)* → reduce_scatter or all_reduce → wait → … → output
//
// For graphs without buckets. Source: fsdp_patterns of torchtitan's graph trainer.

/// The last all-gather on the chain that begins at `node`. A chain continues while a node has one
/// user, and that reads no other node. None: there is no all-gather on it.
NodeId LastAllGatherFrom(const Graph& graph, NodeId node);

/// The value that stands for the whole parameter: what the views at the end of the chain of
/// `gather` view. Errors: its only user is not a wait.
Result<ValueId> UnshardOutput(const Graph& graph, NodeId gather);

/// One for each chain of `placeholder`, in order of its users; empty if it is not sharded.
/// Errors: those of UnshardOutput.
Result<std::vector<ValueId>> UnshardOutputs(const Graph& graph, NodeId placeholder);

/// What the first collective before the output `value` reads: the gradient before its reduction.
/// A node with several users ends the search. None: no collective was found.
ValueId ReductionInput(const Graph& graph, ValueId value);

}  // namespace strata

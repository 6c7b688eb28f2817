#pragma once
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "ir/graph.h"
#include "passes/core/collectives.h"

namespace strata {

/// The collectives of a graph that gather parameters and reduce gradients, and how they depend on
/// each other.
///
/// - An all-gather is one of these if it reads exactly one placeholder, through any nodes, and that
///   is not data and not written.
/// - A reduce-scatter or all-reduce is one if every path from its wait leads through nodes with one
///   input to the output.
///
/// Only the wait may read a launch. Linear in the graph.
/// Source: is_fsdp_all_gather and is_fsdp_reduce_scatter of torch._inductor.fx_passes.bucketing.
class FsdpCollectives {
 public:
  explicit FsdpCollectives(const Graph& graph);

  /// In program order.
  const std::vector<NodeId>& launches() const { return launches_; }
  bool Contains(NodeId node) const { return is_fsdp_[node]; }
  /// The launches of `launches()` that read a result of `launch`, with no other one in between.
  std::vector<NodeId> Next(NodeId launch) const;

 private:
  void FindGathers();
  void FindReductions();

  const Graph& graph_;
  IdVector<NodeId, bool> is_fsdp_;
  IdVector<NodeId, bool> reads_one_;  // placeholder, through any nodes
  std::vector<NodeId> launches_;
};

}  // namespace strata

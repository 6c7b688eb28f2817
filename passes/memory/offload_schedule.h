#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// Where copies to the host are awaited and copies back start. Reads the graph as it is at
/// construction; nodes that are added later do not count.
///
/// Forward regions are maximal runs of call nodes of one layer before the first backward node;
/// backward runs likewise of backward nodes. What is in no layer counts as one layer.
class OffloadSchedule {
 public:
  /// REQUIRES: the graph outlives this.
  explicit OffloadSchedule(const Graph& graph);

  /// The node after which the copy of a result of `node` is awaited, `defer` regions later: at or
  /// after `last_use`, the last forward node that reads the result.
  NodeId AwaitAfter(NodeId node, NodeId last_use, int64_t defer) const;
  /// The node before which the copy back for `first_reader` starts, `prefetch` layers earlier than
  /// the layer of `node`, and after `awaited`.
  NodeId ReloadBefore(NodeId node, NodeId first_reader, NodeId awaited, int64_t prefetch) const;

  const IdVector<NodeId, int32_t>& positions() const { return position_; }
  int32_t position(NodeId node) const { return position_[node]; }

 private:
  const Graph& graph_;
  IdVector<NodeId, int32_t> position_;
  std::vector<NodeId> region_ends_;      // last node of each forward region
  IdVector<NodeId, int32_t> region_of_;  // -1: none
  std::vector<NodeId> run_starts_;       // first node of the first run of each layer, in order
  std::map<int64_t, size_t> run_of_layer_;
};

}  // namespace strata

#pragma once
#include <map>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

/// What must run before each node: the definitions of its operands, writes to memory that it reads,
/// reads of memory that it writes, and what has effects before it, as it has itself. Waits and
/// launches of collectives have effects of their own only, so that they may be moved.
class ExecutionOrder {
 public:
  explicit ExecutionOrder(const Graph& graph);

  /// Without repetitions: operands first, in argument order.
  const std::vector<NodeId>& Before(NodeId node) const { return before_[node]; }
  /// In the order of the graph at construction.
  int32_t position(NodeId node) const { return position_[node]; }

  /// The nodes in an order as close to the present one as `extra` allows: what must also run
  /// before a node. Nodes that wait are placed right behind the last one they wait for.
  /// Errors: a cycle; names a node in it.
  /// Source: stable_topological_sort of torch.fx.passes.
  Result<std::vector<NodeId>> Sort(const std::map<NodeId, std::vector<NodeId>>& extra) const;

 private:
  void AddMemory();

  const Graph& graph_;
  IdVector<NodeId, int32_t> position_;
  IdVector<NodeId, std::vector<NodeId>> before_;
};

}  // namespace strata

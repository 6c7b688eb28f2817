#pragma once
#include <set>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {

/// The sharding rules of the calls of one graph, as they follow from the graph around a call: a
/// view of memory that a later node writes keeps the placement of that memory. A copy of it would
/// miss what is written, or keep it from other readers. REQUIRES: `graph` outlives this.
class CallRules {
 public:
  explicit CallRules(Graph& graph);

  /// Errors: as ShardingRuleOf.
  Result<ShardingRule> Of(NodeId call) const;

 private:
  Graph& graph_;
  std::set<NodeId> views_written_later_;
};

}  // namespace strata

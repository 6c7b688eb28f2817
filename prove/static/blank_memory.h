#pragma once
#include <set>

#include "ir/graph.h"

namespace strata::prove {

/// Memory that has no value yet, or zeros. Ranks that sum it do not count copies: the sum of zeros
/// is zeros.
class BlankMemory {
 public:
  /// What a node makes, or writes to. Nodes are followed in their order.
  void Follow(const Graph& graph, NodeId node);
  bool Contains(const Graph& graph, ValueId value) const;

 private:
  std::set<ValueId> owners_;
};

}  // namespace strata::prove

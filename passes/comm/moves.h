#pragma once
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "ir/rewriter.h"

namespace strata {

/// Places of nodes in program order, while a pass moves nodes and adds some.
class Positions {
 public:
  explicit Positions(const Graph& graph);
  int32_t operator[](NodeId node) const { return positions_[node]; }
  /// Whether `a` stands before `b`; also of nodes that were placed beside one another.
  bool IsBefore(NodeId a, NodeId b) const;
  /// `node` is now beside `other`, with no other node between them, or only such neighbours.
  void PlaceBeside(NodeId node, NodeId other);

 private:
  const Graph& graph_;
  IdVector<NodeId, int32_t> positions_;
};

/// Moves `node` before `before`, and with it what it reads and stands later, in order of operands.
/// Nothing moves if it is there already. REQUIRES: `node` does not read a result of `before`.
void HoistBefore(Rewriter& rewriter, Positions& positions, NodeId node, NodeId before);

/// The nodes that read results of `node`, directly or not, and stand before `limit`; each after
/// what it reads.
std::vector<NodeId> ReadersBefore(const Graph& graph, const Positions& positions, NodeId node,
                                  NodeId limit);

}  // namespace strata

#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "passes/core/written_memory.h"

namespace strata {

/// Which of a set of nodes give the same values when copies of them run later, and what such copies
/// need, where the graph writes to memory.
///
/// A copy reads either copies or kept values. Kept memory has its last content by then, so no write
/// to it may follow the original; and a copy must not write to it again. Memory that is computed
/// again goes through the same writes, in the same order.
class Replay {
 public:
  /// `wanted`: the nodes that are to be copied. Pure functions of their operands,
  /// but for writes.
  Replay(const Graph& graph, IdVector<NodeId, bool> wanted);

  /// Whether a copy of a wanted node can run later.
  bool CanCopy(NodeId node) const { return can_copy_[node]; }

  /// Calls `fn(NodeId)` for each node that must be copied before a reader of the operands of
  /// `reader`: nodes that make or write what it reads. `reader`: a wanted node, or one that comes
  /// after all writes.
  template <class Fn>
  void ForEachSource(NodeId reader, Fn&& fn) const;

  /// Wanted nodes before `writer` that read the memory that `writer` writes: their copies must not
  /// come after its copy.
  std::vector<NodeId> ReadersBefore(NodeId writer) const;

  /// Writers of the memory of `owner`, in program order; see ir/graph.h on owners.
  const std::vector<NodeId>& WritersOf(ValueId owner) const;
  /// Owners of the memory that `node` writes.
  std::vector<ValueId> WrittenBy(NodeId node) const;
  /// All nodes that read memory of `owner`, in program order.
  std::vector<NodeId> ReadersOf(ValueId owner) const;

  int32_t position(NodeId node) const { return position_[node]; }

 private:
  bool IsFresh(ValueId value) const;
  bool MayCopy(NodeId node) const;

  const Graph& graph_;
  IdVector<NodeId, int32_t> position_;
  IdVector<NodeId, bool> can_copy_;
  std::map<ValueId, std::vector<NodeId>> writers_, readers_;  // of owners that are written
};

template <class Fn>
void Replay::ForEachSource(NodeId reader, Fn&& fn) const {
  graph_.ForEachOperand(reader, [&](ValueId operand) {
    const NodeId def = graph_.value(operand).def;
    if (!can_copy_[def]) return;
    fn(def);
    for (const NodeId writer : WritersOf(OwnerOf(graph_, operand))) {
      const bool is_earlier = position(writer) < position(reader);
      if (is_earlier && writer != def && can_copy_[writer]) fn(writer);
    }
  });
}

}  // namespace strata

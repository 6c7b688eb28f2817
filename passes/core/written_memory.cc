#include "passes/core/written_memory.h"

#include "ir/ops.h"

namespace strata {

ValueId OwnerOf(const Graph& graph, ValueId value) {
  const ValueId owner = graph.value(value).alias_of;
  return owner.valid() ? owner : value;
}

bool Mutates(const Graph& graph, NodeId node) {
  return TraitsOf(graph, node).mutates;
}

std::set<ValueId> WrittenMemory(const Graph& graph) {
  std::set<ValueId> written;
  for (const NodeId node : graph.nodes()) {
    if (!Mutates(graph, node)) continue;
    graph.ForEachOperand(node, [&](ValueId value) { written.insert(OwnerOf(graph, value)); });
  }
  return written;
}

}  // namespace strata

#pragma once
#include <cstddef>
#include <cstdint>

#include "base/id.h"
#include "ir/graph.h"

namespace strata {

/// One `value` for each node of a graph, erased ones included.
template <class T>
IdVector<NodeId, T> ByNode(const Graph& graph, const T& value = {}) {
  return IdVector<NodeId, T>(static_cast<size_t>(graph.node_bound()), value);
}

/// One `value` for each value of a graph, those of erased nodes included.
template <class T>
IdVector<ValueId, T> ByValue(const Graph& graph, const T& value = {}) {
  return IdVector<ValueId, T>(static_cast<size_t>(graph.value_bound()), value);
}

/// The position of each node in program order; -1: erased.
inline IdVector<NodeId, int32_t> PositionsOf(const Graph& graph) {
  IdVector<NodeId, int32_t> positions;
  positions.values() = OrderOf(graph);
  return positions;
}

}  // namespace strata

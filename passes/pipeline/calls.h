#pragma once
#include "ir/graph.h"

namespace strata {

/// Neither an input nor the output of its graph.
inline bool IsCall(const Graph& graph, NodeId node) {
  const NodeKind kind = graph.node(node).kind;
  return kind != NodeKind::kPlaceholder && kind != NodeKind::kOutput;
}

}  // namespace strata

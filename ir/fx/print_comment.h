#pragma once
#include <string>

#include "ir/graph.h"

namespace strata::fx {

/// How the comments of a graph mark backward nodes.
struct CommentStyle {
  bool marks_by_key = true;     ///< `autograd_backward: True`
  bool marks_by_prefix = true;  ///< `Backward of forward node:`
};

/// Appends the comment above a node, without indentation, as PyTorch 2.14 writes it.
void AppendComment(const Graph& graph, NodeId id, const CommentStyle& style, std::string& out);

}  // namespace strata::fx

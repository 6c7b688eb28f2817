#pragma once
#include <string>

#include "ir/graph.h"

namespace strata::fx {

/// How the comments of a graph mark backward nodes.
struct CommentStyle {
  bool marks_by_key = true;     ///< `autograd_backward: True`
  bool marks_by_prefix = true;  ///< `Backward of forward node:`
};

/// Makes the comments above nodes as PyTorch 2.14 writes them.
class CommentPrinter {
 public:
  CommentPrinter(const Graph& graph, const CommentStyle& style) : graph_(graph), style_(style) {}

  /// Without indentation.
  void Append(NodeId id, std::string& out);

 private:
  void AppendMetadata(NodeId id, std::string& out) const;
  void AppendAnnotation(NodeId id, std::string& out) const;
  void AppendParts(NodeId id, std::string& out) const;

  const Graph& graph_;
  const CommentStyle style_;
  // Nodes of one module stand together: the parts of the last one, which had no attributes.
  std::string parts_;
  NodeId parts_of_;
};

}  // namespace strata::fx

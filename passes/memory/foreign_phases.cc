#include "passes/memory/foreign_phases.h"

#include <ranges>
#include <vector>

#include "ir/rewriter.h"
#include "passes/core/written_memory.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Only backward nodes read it, or beside them the output.
bool IsForBackward(const Graph& graph, NodeId node) {
  bool is_read = false;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    for (const Use& use : graph.uses(graph.result(node, i))) {
      if (graph.node(use.user).kind == NodeKind::kOutput) continue;
      if (!IsBackward(graph, use.user)) return false;
      is_read = true;
    }
  }
  return is_read && !Mutates(graph, node);
}

}  // namespace

void CompleteBackward(Graph& graph) {
  if (!graph.is_foreign()) return;
  std::vector<NodeId> later;
  for (const NodeId node : graph.nodes()) {
    const bool is_call = graph.node(node).kind == NodeKind::kCall;
    if (is_call && (!later.empty() || IsBackward(graph, node))) later.push_back(node);
  }
  Rewriter rewriter(graph);
  for (const NodeId node : later | std::views::reverse) {
    if (!IsBackward(graph, node) && IsForBackward(graph, node))
      rewriter.SetPhase(node, Phase::kBackward);
  }
}

}  // namespace strata

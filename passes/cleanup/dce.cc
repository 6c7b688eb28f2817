#include "passes/cleanup/dce.h"

#include "ir/ops.h"
#include "ir/rewriter.h"

namespace strata {
namespace {

bool MustStay(const Graph& graph, NodeId node) {
  return IsImpure(graph, node) && !IsOverloadOf(graph.op(node), "aten._assert_async");
}

bool DropUnusedElements(Rewriter& rewriter, NodeId node) {
  const Graph& graph = rewriter.graph();
  bool dropped = false;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const ValueId element = graph.result(node, i);
    const Value& value = graph.value(element);
    if (value.num_uses > 0 || !value.name.valid()) continue;
    rewriter.SetElementName(element, "");
    dropped = true;
  }
  return dropped;
}

bool Sweep(Graph& graph) {
  Rewriter rewriter(graph);
  bool changed = false;
  NodeId before;
  for (NodeId node = graph.last(); node.valid(); node = before) {
    before = graph.node(node).prev;
    if (!graph.HasUses(node) && !MustStay(graph, node)) {
      rewriter.Erase(node);
      changed = true;
    } else {
      changed |= DropUnusedElements(rewriter, node);
    }
  }
  return changed;
}

}  // namespace

Result<Changed> DeadCodeElimination::Run(Module& module) {
  bool changed = false;
  for (GraphId id : module.programs())
    changed |= Sweep(module.graph(id));
  return Changed(changed);
}

}  // namespace strata

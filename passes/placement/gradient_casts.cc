#include "passes/placement/gradient_casts.h"

#include <set>
#include <vector>

#include "ir/ops.h"
#include "passes/core/written_memory.h"
#include "passes/placement/inputs.h"

namespace strata {

void HoistGradientCasts(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  if (!graph.output().valid()) return;
  const std::set<ValueId> written = WrittenMemory(graph);
  for (const ValueId gradient : graph.operands(graph.output())) {
    const NodeId cast = graph.value(gradient).def;
    if (graph.node(cast).kind != NodeKind::kCall || graph.node(cast).phase != Phase::kBackward)
      continue;
    const std::vector<ValueId> operands = graph.operands(cast);
    if (BaseName(graph.op(cast)) != "_to_copy" || operands.size() != 1) continue;
    const NodeId producer = graph.value(operands[0]).def;
    const bool is_call = graph.node(producer).kind == NodeKind::kCall;
    if (!is_call || written.contains(OwnerOf(graph, operands[0]))) continue;
    rewriter.MoveBefore(cast, graph.node(producer).next);
  }
}

bool WidensGradient(const Graph& graph, NodeId node) {
  if (!IsCast(graph, node) || graph.node(node).phase != Phase::kBackward) return false;
  const auto bytes = [&](ValueId value) -> int64_t {
    const TypeId type = graph.value(value).type;
    return type.valid() ? ByteSize(graph.module().types()[type].dtype) : 0;
  };
  if (bytes(graph.result(node)) <= bytes(graph.operands(node)[0])) return false;
  for (const Use use : graph.uses(graph.result(node)))
    if (use.user == graph.output()) return true;
  return false;
}

}  // namespace strata

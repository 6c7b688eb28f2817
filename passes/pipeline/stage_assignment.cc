#include "passes/pipeline/stage_assignment.h"

#include <algorithm>
#include <string_view>

#include "ir/by_node.h"
#include "ir/module.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

bool IsGradientSum(const Graph& graph, NodeId node) {
  return !graph.attribute(node, "is_gradient_acc").empty();
}

Status CheckReaders(const Graph& graph, const StageAssignment& stages) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kOutput) continue;
    for (const ValueId operand : graph.operands(node)) {
      const NodeId def = graph.value(operand).def;
      const int64_t owner = stages.of(def), reader = stages.of(node);
      if (owner == reader || owner == StageAssignment::kEvery || reader == StageAssignment::kEvery)
        continue;
      if (graph.node(def).kind != NodeKind::kPlaceholder) continue;
      return Error(
          "parameter '{}' of stage {} is read by stage {}: graph {}: node {}: put its modules on "
          "one stage, or do not tie weights",
          graph.name(def), owner, reader, graph.name_text(), graph.name(node));
    }
  }
  return Ok();
}

Status CheckWriters(const Graph& graph, const StageAssignment& stages) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall || !Mutates(graph, node)) continue;
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId owner = graph.value(graph.result(node, i)).alias_of;
      if (!owner.valid()) continue;
      const int64_t made = stages.of(graph.value(owner).def), written = stages.of(node);
      if (made == written || made == StageAssignment::kEvery || written == StageAssignment::kEvery)
        continue;
      return Error("stage {} writes to memory of stage {}: graph {}: node {}: put both on a stage",
                   written, made, graph.name_text(), graph.name(node));
    }
  }
  return Ok();
}

}  // namespace

Result<StageAssignment> StageAssignment::Make(const Graph& graph, const StageModules& modules) {
  StageAssignment made;
  made.stages_ = ByNode<int64_t>(graph, StageAssignment::kEvery);
  for (const NodeId node : graph.nodes()) {
    const Node& n = graph.node(node);
    int64_t stage = modules.StageOf(graph.module().str(n.module));
    const bool is_sum = IsGradientSum(graph, node);
    if ((stage == StageAssignment::kEvery || is_sum) && n.kind != NodeKind::kPlaceholder) {
      int64_t first = modules.size(), last = StageAssignment::kEvery;
      graph.ForEachOperand(node, [&](ValueId operand) {
        const int64_t of_operand = made.of(graph.value(operand).def);
        if (of_operand != StageAssignment::kEvery) first = std::min(first, of_operand);
        last = std::max(last, of_operand);
      });
      if (last != StageAssignment::kEvery) stage = n.phase == Phase::kBackward ? first : last;
    }
    made.stages_[node] = stage;
  }
  STRATA_RETURN_IF_ERROR(CheckReaders(graph, made));
  STRATA_RETURN_IF_ERROR(CheckWriters(graph, made));
  return made;
}

}  // namespace strata

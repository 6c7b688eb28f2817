#include "passes/pipeline/stage_assignment.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/by_node.h"
#include "ir/gradient_sums.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "passes/pipeline/graph_copier.h"

namespace strata {
namespace {

Status CheckReaders(const Graph& graph, const StageAssignment& stages) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kOutput) continue;
    for (const ValueId operand : graph.operands(node)) {
      const NodeId def = graph.value(operand).def;
      const int64_t owner = stages.of(def), reader = stages.of(node);
      if (owner == reader || owner == StageAssignment::kEvery || reader == StageAssignment::kEvery)
        continue;
      if (graph.node(def).kind != NodeKind::kPlaceholder || stages.is_shared(def)) continue;
      return Error(
          "input '{}' of stage {} is read by stage {}: graph {}: node {}: put its modules on one "
          "stage",
          graph.name(def), owner, reader, graph.name_text(), graph.name(node));
    }
  }
  return Ok();
}

bool IsParameter(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kPlaceholder &&
         graph.attribute(node, "input") == "parameter";
}

/// What forward computes of one parameter and nothing else (casts, gathers, views): the parameter.
IdVector<NodeId, NodeId> FindDerived(const Graph& graph) {
  IdVector<NodeId, NodeId> parameter_of = ByNode<NodeId>(graph);
  const std::set<ValueId> written = WrittenMemory(graph);
  for (const NodeId node : graph.nodes()) {
    if (IsParameter(graph, node)) parameter_of[node] = node;
    const Node& n = graph.node(node);
    if (n.kind != NodeKind::kCall || n.phase == Phase::kBackward || Mutates(graph, node)) continue;
    if (TraitsOf(graph.op(node)).random || graph.operands(node).empty()) continue;
    const NodeId parameter = parameter_of[graph.value(graph.operands(node)[0]).def];
    bool is_derived = parameter.valid();
    graph.ForEachOperand(node, [&](ValueId operand) {
      is_derived &= parameter_of[graph.value(operand).def] == parameter;
    });
    for (size_t i = 0; i < n.num_results; ++i)
      is_derived &= !written.contains(OwnerOf(graph, graph.result(node, i)));
    if (is_derived) parameter_of[node] = parameter;
  }
  return parameter_of;
}

/// What a step returns as the gradient of each parameter; empty: the graph returns no gradients.
std::map<NodeId, ValueId> GradientsOf(const Graph& graph) {
  std::vector<NodeId> parameters;
  for (const NodeId node : graph.placeholders())
    if (IsParameter(graph, node)) parameters.push_back(node);
  const std::vector<std::optional<ValueId>> outputs = OutputsOf(graph);
  std::map<NodeId, ValueId> gradients;
  if (outputs.size() < 1 + parameters.size()) return gradients;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (outputs[1 + i]) gradients.emplace(parameters[i], *outputs[1 + i]);
  return gradients;
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

/// Nodes of backward that compute gradients: they depend on the loss. Recomputed ones do not.
IdVector<NodeId, bool> FindGradients(const Graph& graph) {
  IdVector<NodeId, bool> is_gradient = ByNode<bool>(graph);
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).phase != Phase::kBackward) continue;
    bool depends = false;
    graph.ForEachOperand(node, [&](ValueId operand) {
      const NodeId def = graph.value(operand).def;
      depends |= is_gradient[def] || graph.node(def).phase == Phase::kLoss;
    });
    is_gradient[node] = depends;
  }
  return is_gradient;
}

}  // namespace

Result<StageAssignment> StageAssignment::Make(const Graph& graph, const StageModules& modules) {
  StageAssignment made;
  made.stages_ = ByNode<int64_t>(graph, StageAssignment::kEvery);
  const IdVector<NodeId, bool> is_gradient = FindGradients(graph);
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
    // Gradients go back: what is computed of one is not on a later stage, as the cast of a gradient
    // of a parameter that two stages read.
    if (is_gradient[node] && stage != StageAssignment::kEvery) {
      graph.ForEachOperand(node, [&](ValueId operand) {
        const NodeId def = graph.value(operand).def;
        if (is_gradient[def] && made.of(def) != StageAssignment::kEvery)
          stage = std::min(stage, made.of(def));
      });
    }
    made.stages_[node] = stage;
  }
  made.ShareParameters(graph);
  STRATA_RETURN_IF_ERROR(CheckReaders(graph, made));
  STRATA_RETURN_IF_ERROR(CheckWriters(graph, made));
  return made;
}

void StageAssignment::ShareParameters(const Graph& graph) {
  const IdVector<NodeId, NodeId> parameter_of = FindDerived(graph);
  std::map<NodeId, std::set<int64_t>> readers;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kOutput || parameter_of[node].valid()) continue;
    graph.ForEachOperand(node, [&](ValueId operand) {
      const NodeId parameter = parameter_of[graph.value(operand).def];
      if (parameter.valid() && of(node) != kEvery) readers[parameter].insert(of(node));
    });
  }
  for (const auto& [parameter, stages] : readers) {
    const int64_t first = *stages.begin();
    if (of(parameter) == kEvery || (stages.size() == 1 && first == of(parameter))) continue;
    shared_.insert(parameter);
    stages_[parameter] = first;
  }
  for (const NodeId node : graph.nodes())
    if (graph.node(node).kind == NodeKind::kCall && shared_.contains(parameter_of[node]))
      stages_[node] = kEvery;
  for (const auto& [parameter, gradient] : GradientsOf(graph)) {
    if (!shared_.contains(parameter)) continue;
    // Back to the sum.
    for (NodeId node = graph.value(gradient).def;
         node.valid() && graph.node(node).phase == Phase::kBackward;
         node = OnlyInputOf(graph, node))
      stages_[node] = of(parameter);
  }
}

}  // namespace strata

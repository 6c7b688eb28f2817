#include "passes/pipeline/graph_copier.h"

#include <string>
#include <vector>

#include "passes/placement/placement.h"

namespace strata {

NodeId GraphCopier::AddInput(ValueId value, const StageSlot& slot) {
  const NodeId def = from_.value(value).def;
  const TypeId type = from_.value(value).type;
  const bool is_placeholder = from_.node(def).kind == NodeKind::kPlaceholder;
  const NodeId node = rewriter_.Create({.kind = NodeKind::kPlaceholder,
                                        .results = std::span(&type, 1),
                                        .name = prefix_ + std::string(from_.value_name(value))},
                                       From(from_, {def}, Origin::kCloned));
  if (is_placeholder) CopyAttributes(from_, def, rewriter_, node);
  SetInputSlot(rewriter_, node, slot);
  values_[value] = rewriter_.graph().result(node);
  return node;
}

void GraphCopier::SetOutputs(std::span<const std::optional<ValueId>> outputs,
                             const std::vector<StageSlot>& slots) {
  std::vector<Arg> results;
  for (const std::optional<ValueId>& output : outputs)
    results.push_back(output ? Arg(values_.at(*output)) : Arg::None());
  const Arg list = rewriter_.MakeSpan(ArgKind::kList, results);
  const NodeId output = rewriter_.Create(
      {.kind = NodeKind::kOutput, .args = std::span(&list, 1), .name = from_.name(from_.output())},
      From(from_, {from_.output()}, Origin::kCloned));
  SetOutputSlots(rewriter_, slots);
  const std::string mesh(from_.attribute(from_.output(), kMeshAttribute));
  if (!mesh.empty()) rewriter_.SetAttribute(output, kMeshAttribute, mesh);
}

Status CheckHeld(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  const TypeTable& types = graph.module().types();
  if (!type.valid() || types[type].kind != TypeKind::kOpaque) return Ok();
  return Error(ErrorCode::kUnsupported,
               "unsupported symbolic metadata: graph {}: {} is {}, and ranks hold tensors and "
               "integers between two graphs: pass what it is computed from",
               graph.name_text(), graph.value_name(value), types.ToString(type));
}

std::vector<std::optional<ValueId>> OutputsOf(const Graph& graph) {
  std::vector<std::optional<ValueId>> outputs;
  const Arg& list = graph.args(graph.output())[0];
  const std::span<const Arg> elements =
      list.is_span() ? graph.elements(list) : std::span<const Arg>(&list, 1);
  for (const Arg& element : elements)
    outputs.push_back(element.is_value() ? std::optional(element.value()) : std::nullopt);
  return outputs;
}

}  // namespace strata

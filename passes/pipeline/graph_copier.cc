#include "passes/pipeline/graph_copier.h"

#include <string>
#include <utility>
#include <vector>

#include "passes/core/written_memory.h"
#include "passes/placement/placement.h"

namespace strata {

NodeId GraphCopier::AddInput(ValueId value, const StageSlot& slot) {
  const NodeId def = from_.value(value).def;
  const TypeId type = from_.value(value).type;
  const bool is_placeholder = from_.node(def).kind == NodeKind::kPlaceholder;
  const NodeId node = rewriter_.Create({.kind = NodeKind::kPlaceholder,
                                        .results = std::span(&type, 1),
                                        .name = Named(from_.value_name(value))},
                                       From(from_, {def}, Origin::kCloned));
  if (is_placeholder) CopyAttributes(def, node);
  SetInputSlot(rewriter_, node, slot);
  values_[value] = rewriter_.graph().result(node);
  return node;
}

Arg GraphCopier::CopyArg(const Arg& arg) {
  if (arg.is_value()) return values_.at(arg.value());
  if (!arg.is_span()) return arg;
  std::vector<Arg> elements;
  for (const Arg& element : from_.elements(arg))
    elements.push_back(CopyArg(element));
  return rewriter_.MakeSpan(arg.kind(), elements);
}

void GraphCopier::CopyAttributes(NodeId from, NodeId to) {
  const Module& module = from_.module();
  for (const auto& [key, value] : from_.attributes(from))
    rewriter_.SetAttribute(to, module.str(key), module.str(value));
}

/// The owner of a result's memory may be in another graph: it is that of the operand then.
void GraphCopier::CopyAliases(NodeId from, NodeId to) {
  const Graph& graph = rewriter_.graph();
  for (size_t i = 0; i < from_.node(from).num_results; ++i) {
    const ValueId owner = from_.value(from_.result(from, i)).alias_of;
    if (!owner.valid()) continue;
    for (const ValueId operand : from_.operands(from)) {
      if (OwnerOf(from_, operand) != owner) continue;
      rewriter_.SetAlias(graph.result(to, i), OwnerOf(graph, values_.at(operand)));
      break;
    }
  }
}

NodeId GraphCopier::Copy(NodeId node) {
  std::vector<Arg> args;
  for (const Arg& arg : from_.args(node))
    args.push_back(CopyArg(arg));
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < from_.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = from_.kwarg(node, i);
    kwargs.push_back({kwarg.name, CopyArg(kwarg.value)});
  }
  std::vector<TypeId> results;
  for (size_t i = 0; i < from_.node(node).num_results; ++i)
    results.push_back(from_.value(from_.result(node, i)).type);
  const Node& original = from_.node(node);
  const NodeId copy = rewriter_.Create({.kind = original.kind,
                                        .op = from_.op(node),
                                        .args = args,
                                        .kwargs = kwargs,
                                        .results = results,
                                        .returns_tuple = original.returns_tuple,
                                        .name = Named(from_.name(node))},
                                       From(from_, {node}, Origin::kCloned));
  if (results.empty()) rewriter_.SetResults(copy, {}, original.returns_tuple);
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId from = from_.result(node, i), to = rewriter_.graph().result(copy, i);
    values_[from] = to;
    if (from_.value(from).name.valid())
      rewriter_.SetElementName(to, Named(from_.module().str(from_.value(from).name)));
  }
  CopyAliases(node, copy);
  CopyAttributes(node, copy);
  return copy;
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

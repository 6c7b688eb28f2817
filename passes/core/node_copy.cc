#include "passes/core/node_copy.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/symbol_sizes.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

/// What an argument refers to in the tables of its module, in those of another.
Arg InModule(const Module& from, const Arg& arg, Module& to) {
  const auto text = [&] { return to.Intern(from.str(arg.str())); };
  switch (arg.kind()) {
    case ArgKind::kString:
      return Arg::String(text());
    case ArgKind::kDevice:
      return Arg::Device(text());
    case ArgKind::kRaw:
      return Arg::Raw(text());
    case ArgKind::kDim:
      if (const auto number = from.dims().AsConst(arg.dim())) return Arg::Int(*number);
      return Arg::Dim(CopyDim(from, arg.dim(), to));
    default:
      return arg;
  }
}

void CopyAliases(const Graph& from, NodeId node, Rewriter& to, NodeId copy,
                 const CopiedValues& copies) {
  for (size_t i = 0; i < from.node(node).num_results; ++i) {
    const ValueId owner = from.value(from.result(node, i)).alias_of;
    if (!owner.valid()) continue;
    for (const ValueId operand : from.operands(node)) {
      if (OwnerOf(from, operand) != owner) continue;
      to.SetAlias(to.graph().result(copy, i), OwnerOf(to.graph(), copies.at(operand)));
      break;
    }
  }
}

}  // namespace

Arg CopyArg(const Graph& from, const Arg& arg, Rewriter& to, const CopiedValues& copies) {
  if (arg.is_value()) return copies.at(arg.value());
  if (arg.is_span()) {
    std::vector<Arg> elements;
    for (const Arg& element : from.elements(arg))
      elements.push_back(CopyArg(from, element, to, copies));
    return to.MakeSpan(arg.kind(), elements);
  }
  Module& module = to.graph().module();
  return &module == &from.module() ? arg : InModule(from.module(), arg, module);
}

void CopyAttributes(const Graph& from, NodeId node, Rewriter& to, NodeId copy) {
  for (const auto& [key, value] : from.attributes(node))
    to.SetAttribute(copy, from.module().str(key), from.module().str(value));
}

NodeId CopyNode(const Graph& from, NodeId node, Rewriter& to, CopiedValues& copies,
                const CopyOptions& options) {
  std::vector<Arg> args;
  for (const Arg& arg : from.args(node))
    args.push_back(CopyArg(from, arg, to, copies));
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < from.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = from.kwarg(node, i);
    kwargs.push_back({kwarg.name, CopyArg(from, kwarg.value, to, copies)});
  }
  std::vector<TypeId> results;
  for (size_t i = 0; i < from.node(node).num_results; ++i)
    results.push_back(from.value(from.result(node, i)).type);
  const auto named = [&](std::string_view name) {
    return std::string(options.prefix).append(name);
  };
  const Node& original = from.node(node);
  const std::string name = named(from.name(node));
  const NodeId copy = to.Create({.kind = original.kind,
                                 .op = from.op(node),
                                 .args = args,
                                 .kwargs = kwargs,
                                 .results = results,
                                 .returns_tuple = original.returns_tuple,
                                 .name = name,
                                 .stable_id = options.stable_id},
                                From(from, {node}, Origin::kCloned));
  if (results.empty()) to.SetResults(copy, {}, original.returns_tuple);
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId value = from.result(node, i), copied = to.graph().result(copy, i);
    copies[value] = copied;
    if (const StrId element = from.value(value).name; element.valid())
      to.SetElementName(copied, named(from.module().str(element)));
  }
  CopyAliases(from, node, to, copy, copies);
  CopyAttributes(from, node, to, copy);
  return copy;
}

}  // namespace strata

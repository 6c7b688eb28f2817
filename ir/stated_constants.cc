#include "ir/stated_constants.h"

#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "ir/complex_literal.h"
#include "ir/copies.h"
#include "ir/module.h"

namespace strata {
namespace {

constexpr std::string_view kFull = "aten.full.default";

/// The constant that a value is, or is a copy of; invalid: it is another value.
NodeId ConstantOf(const Graph& graph, ValueId value) {
  NodeId node = graph.value(value).def;
  while (graph.node(node).kind == NodeKind::kCall && IsPlainCopy(graph.op(node))) {
    const std::vector<ValueId> operands = graph.operands(node);
    if (operands.size() != 1) return {};
    node = graph.value(operands[0]).def;
  }
  return graph.node(node).kind == NodeKind::kGetAttr ? node : NodeId{};
}

/// "": the literal is not a number.
std::string TextOf(const Module& module, const Arg& literal) {
  switch (literal.kind()) {
    case ArgKind::kBool:
      return literal.as_bool() ? "True" : "False";
    case ArgKind::kInt:
      return fmt::format("{}", literal.as_int());
    case ArgKind::kFloat:
      return fmt::format("{}", literal.as_float());
    case ArgKind::kRaw:
      return ParseComplex(module.str(literal.str())) ? std::string(module.str(literal.str())) : "";
    default:
      return "";
  }
}

const Type* TensorTypeOf(const Graph& graph, NodeId node) {
  if (graph.node(node).num_results != 1) return nullptr;
  const TypeId type = graph.value(graph.result(node)).type;
  return type.valid() ? &graph.module().types()[type] : nullptr;
}

bool IsAlike(const Type* a, const Type* b) {
  return a != nullptr && b != nullptr && a->dtype == b->dtype && a->sizes.size() == b->sizes.size();
}

}  // namespace

StatedConstants StatedConstantsOf(const Graph& before, const Graph& after) {
  std::unordered_map<std::string_view, NodeId> calls;
  bool has_constants = false;
  for (const NodeId node : before.nodes()) {
    has_constants |= before.node(node).kind == NodeKind::kGetAttr;
    if (before.node(node).kind == NodeKind::kCall) calls.emplace(before.name(node), node);
  }
  if (!has_constants) return {};
  std::map<std::string, std::map<std::string, Arg>> stated;  // by attribute: by its text
  for (const NodeId node : after.nodes()) {
    const auto found = calls.find(after.name(node));
    if (found == calls.end() || before.op(found->second) != after.op(node)) continue;
    const std::vector<ValueId> from = before.operands(found->second), to = after.operands(node);
    for (size_t i = 0; i < to.size() && from.size() == to.size(); ++i) {
      const NodeId full = after.value(to[i]).def;
      if (after.node(full).kind != NodeKind::kCall || after.op(full) != kFull) continue;
      const NodeId constant = ConstantOf(before, from[i]);
      if (!constant.valid() || after.args(full).size() < 2) continue;
      const Arg& literal = after.args(full)[1];
      const std::string text = TextOf(after.module(), literal);
      if (text.empty() || !IsAlike(TensorTypeOf(before, constant), TensorTypeOf(after, full)))
        continue;
      stated[std::string(before.op(constant))].emplace(text, literal);
    }
  }
  StatedConstants constants;
  for (const auto& [attribute, literals] : stated) {
    if (literals.size() != 1) continue;
    const auto& [text, literal] = *literals.begin();
    constants.emplace(attribute, StatedConstant{literal, text});
  }
  return constants;
}

}  // namespace strata

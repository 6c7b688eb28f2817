#include "ir/stored_inputs.h"

#include <cstddef>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata {
namespace {

std::string TypeTextOf(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() ? graph.module().types().ToString(type) : "";
}

std::set<std::string_view> AttributesOf(const Graph& graph) {
  std::set<std::string_view> attributes;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kGetAttr) attributes.insert(graph.op(node));
  }
  return attributes;
}

/// Inputs that calls of `before` read where those of `after` read an attribute, by attribute.
std::map<std::string, std::set<NodeId>> Candidates(const Graph& before, const Graph& after) {
  std::unordered_map<std::string_view, NodeId> calls;
  for (const NodeId node : before.nodes()) {
    if (before.node(node).kind == NodeKind::kCall) calls.emplace(before.name(node), node);
  }
  const std::set<std::string_view> known = AttributesOf(before);
  std::map<std::string, std::set<NodeId>> candidates;
  for (const NodeId node : after.nodes()) {
    const auto found = calls.find(after.name(node));
    if (found == calls.end() || before.op(found->second) != after.op(node)) continue;
    const std::vector<ValueId> from = before.operands(found->second), to = after.operands(node);
    for (size_t i = 0; i < to.size() && from.size() == to.size(); ++i) {
      const NodeId attribute = after.value(to[i]).def, input = before.value(from[i]).def;
      if (after.node(attribute).kind != NodeKind::kGetAttr) continue;
      if (known.contains(after.op(attribute))) continue;
      const bool is_input = before.node(input).kind == NodeKind::kPlaceholder &&
                            TypeTextOf(before, from[i]) == TypeTextOf(after, to[i]);
      candidates[std::string(after.op(attribute))].insert(is_input ? input : NodeId{});
    }
  }
  return candidates;
}

}  // namespace

StoredInputs StoredInputsOf(const Graph& before, const Graph& after) {
  if (AttributesOf(after).empty()) return {};
  StoredInputs stored;
  std::map<NodeId, int> holders;
  for (const auto& [attribute, inputs] : Candidates(before, after)) {
    if (inputs.size() != 1 || !inputs.begin()->valid()) continue;
    stored.emplace(attribute, *inputs.begin());
    ++holders[*inputs.begin()];
  }
  std::erase_if(stored, [&](const auto& entry) { return holders[entry.second] > 1; });
  return stored;
}

std::string StoredInputText(const Graph& before, NodeId input, const std::string& attribute) {
  return fmt::format("the attribute {} holds the input {}", attribute, before.name(input));
}

}  // namespace strata

#include "ir/stated_path.h"

#include <algorithm>
#include <array>

#include "ir/module.h"

namespace strata {
namespace {

bool IsNumber(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

/// `layers.0.wq.weight` of `L_self_modules_layers_modules_0_modules_wq_parameters_weight_`,
/// whatever the variable is called that holds the model.
std::string PathOfDynamo(std::string_view name) {
  constexpr std::array<std::string_view, 3> kSteps = {"_modules_", "_parameters_", "_buffers_"};
  if (!name.starts_with("L_") && !name.starts_with("l_")) return "";
  if (name.ends_with('_')) name.remove_suffix(1);
  std::string path;
  for (bool is_variable = true;; is_variable = false) {
    size_t at = std::string_view::npos, length = 0;
    for (const std::string_view step : kSteps) {
      const size_t found = name.find(step);
      if (found >= at) continue;
      at = found;
      length = step.size();
    }
    if (!path.empty()) path += '.';
    if (!is_variable) path += name.substr(0, at);
    if (at == std::string_view::npos) return path;
    name.remove_prefix(at + length);
  }
}

/// `layers.0.wq_weight` of `layers_0_wq_weight`.
std::string PathOfExport(std::string_view name) {
  std::string path;
  bool after_number = false;
  while (true) {
    const std::string_view word = name.substr(0, name.find('_'));
    if (!path.empty()) path += after_number || IsNumber(word) ? '.' : '_';
    path += word;
    after_number = IsNumber(word);
    if (word.size() == name.size()) return path;
    name.remove_prefix(word.size() + 1);
  }
}

/// What is quoted after `target=` in the descriptor of a parameter or a buffer.
std::string_view PathOfDescriptor(std::string_view descriptor) {
  constexpr std::string_view kTarget = "(target='";
  if (!descriptor.starts_with("ParamAOTInput") && !descriptor.starts_with("BufferAOTInput"))
    return "";
  const size_t at = descriptor.find(kTarget);
  if (at == std::string_view::npos) return "";
  descriptor.remove_prefix(at + kTarget.size());
  return descriptor.substr(0, descriptor.find('\''));
}

}  // namespace

std::string StatedPath(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind == NodeKind::kGetAttr) {
    const std::string_view target = graph.module().str(node.op);
    return std::string(target.find('.') == std::string_view::npos ? "" : target);
  }
  if (node.kind != NodeKind::kPlaceholder) return "";
  if (const std::string_view path = graph.attribute(id, kPathKey); !path.empty())
    return std::string(path);
  if (const std::string_view path = PathOfDescriptor(graph.attribute(id, "descriptor"));
      !path.empty()) {
    return std::string(path);
  }
  const std::string_view name = graph.name(id);
  for (const std::string_view prefix : {"p_", "b_"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size())
      return PathOfExport(name.substr(prefix.size()));
  }
  const std::string_view argument = graph.attribute(id, "argument");
  return PathOfDynamo(argument.empty() ? name : argument);
}

std::string_view ModuleOfPath(std::string_view path) {
  const size_t dot = path.rfind('.');
  return path.substr(0, dot == std::string_view::npos ? 0 : dot);
}

}  // namespace strata

#include "passes/placement/costs/twins.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ir/module.h"

namespace strata {
namespace {

/// The nodes of one module of a layer in one phase, in program order, and what makes them alike.
struct ModulePart {
  std::vector<NodeId> nodes;
  std::string signature;
};

std::string SignatureOf(const Graph& graph, NodeId id, std::string_view path) {
  const Node& node = graph.node(id);
  std::string text = node.kind == NodeKind::kPlaceholder ? "input" : std::string(graph.op(id));
  text += ' ';
  text += path;
  for (size_t i = 0; i < node.num_results; ++i) {
    const TypeId type = graph.value(graph.result(id, i)).type;
    text += ' ';
    if (type.valid()) text += graph.module().types().ToString(type);
  }
  text += '\n';
  return text;
}

}  // namespace

std::string WithoutLayer(std::string_view path, int64_t& layer) {
  layer = -1;
  constexpr std::string_view kLayers = "layers.";
  const size_t at = path.find(kLayers);
  const bool is_whole = at == 0 || (at != std::string_view::npos && path[at - 1] == '.');
  if (!is_whole) return std::string(path);
  const size_t begin = at + kLayers.size();
  size_t end = begin;
  while (end < path.size() && IsDigit(path[end]))
    ++end;
  if (end == begin) return std::string(path);
  std::from_chars(path.data() + begin, path.data() + end, layer);
  return std::string(path.substr(0, begin)) + "*" + std::string(path.substr(end));
}

Twins FindTwins(const Graph& graph, int64_t split,
                const std::function<std::string(NodeId)>& decided) {
  // By layer, phase or -1 for inputs, and module.
  std::map<std::tuple<int64_t, int, std::string>, ModulePart> parts;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    const bool is_input = node.kind == NodeKind::kPlaceholder;
    if (!is_input && node.kind != NodeKind::kCall) continue;
    std::string_view path;
    if (is_input)
      path = graph.attribute(id, "fqn");
    else if (node.module.valid())
      path = graph.module().str(node.module);
    int64_t layer = -1;
    const std::string pattern = WithoutLayer(path, layer);
    if (layer < 0) continue;
    ModulePart& part = parts[{layer, is_input ? -1 : static_cast<int>(node.phase), pattern}];
    part.nodes.push_back(id);
    if (layer < split) part.signature += "split ";
    part.signature += SignatureOf(graph, id, pattern);
    if (decided) part.signature += decided(id);
  }
  // Backward visits the last layer first: roots are the first in the program.
  std::map<int, std::pair<int, const ModulePart*>> in_order;  // by place: phase, part
  std::map<NodeId, int> place_of;
  for (const NodeId id : graph.nodes())
    place_of.emplace(id, static_cast<int>(place_of.size()));
  for (const auto& [key, part] : parts)
    in_order[place_of.at(part.nodes.front())] = {std::get<1>(key), &part};
  Twins twins;
  std::map<std::pair<int, std::string>, const ModulePart*> first;
  for (const auto& [place, of] : in_order) {
    const auto& [phase, part] = of;
    const ModulePart* root = first.try_emplace({phase, part->signature}, part).first->second;
    for (size_t i = 0; i < part->nodes.size(); ++i)
      twins.root_of.emplace(part->nodes[i], root->nodes[i]);
  }
  return twins;
}

int64_t NumLayers(const Graph& graph) {
  int64_t count = 0;
  for (const NodeId id : graph.nodes()) {
    int64_t layer = -1;
    if (graph.node(id).module.valid())
      WithoutLayer(graph.module().str(graph.node(id).module), layer);
    count = std::max(count, layer + 1);
  }
  return count;
}

}  // namespace strata

#include "passes/placement/auto/plan_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/placement/inputs.h"

namespace strata {
namespace {

size_t ChoiceOf(const AutoPlacement& placement, int variable) {
  return static_cast<size_t>(placement.solved.choices[static_cast<size_t>(variable)]);
}

const CallStrategy& StrategyOf(const AutoPlacement& placement, NodeId node) {
  const int variable = placement.space.variable_of.at(node);
  return placement.space.variables[static_cast<size_t>(variable)]
      .strategies[ChoiceOf(placement, variable)];
}

/// Entries of one kind: what names them, and what they decide.
class Entries {
 public:
  /// `name` with the layer as a number in `path`.
  void Add(std::string_view path, const std::string& before, const std::string& after,
           const std::string& placements) {
    int64_t layer = -1;
    const std::string pattern = WithoutLayer(path, layer);
    const auto key = std::pair(pattern, before + after);
    auto [found, is_new] = index_.try_emplace(key, groups_.size());
    if (is_new) groups_.push_back({pattern, before, after, {}});
    groups_[found->second].members.emplace_back(std::string(path), placements);
  }

  /// Modules inside of others first: `layers.*` also matches what is inside of layers.
  std::string Text() const {
    std::vector<const Group*> sorted;
    for (const Group& group : groups_)
      sorted.push_back(&group);
    std::ranges::stable_sort(sorted, [](const Group* a, const Group* b) {
      return std::ranges::count(a->pattern, '.') > std::ranges::count(b->pattern, '.');
    });
    std::string text;
    for (const Group* group : sorted)
      text += TextOf(*group);
    return text;
  }

 private:
  struct Group {
    std::string pattern, before, after;
    std::vector<std::pair<std::string, std::string>> members;  ///< (path, placements)
  };

  /// Layers that differ from most others have entries of their own.
  static std::string TextOf(const Group& group) {
    std::map<std::string, int> counts;
    for (const auto& [path, placements] : group.members)
      ++counts[placements];
    const std::string most =
        std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
    std::string text;
    const auto add = [&](std::string_view path, std::string_view placements) {
      text += fmt::format("  {{ {}\"{}\"{}{} }},\n", group.before, path, group.after, placements);
    };
    for (const auto& [path, placements] : group.members)
      if (placements != most) add(path, placements);
    add(group.pattern, most);
    return text;
  }

  std::vector<Group> groups_;
  std::map<std::pair<std::string, std::string>, size_t> index_;
};

std::string OnAxis(const Module& module, const std::vector<Placements>& tensors, size_t axis) {
  Placements on_axis;
  for (const Placements& placements : tensors)
    on_axis.push_back(placements[axis]);
  return PlacementsText(module, on_axis);
}

/// In which placements readers share copies of the results of a call.
std::vector<Placements> SharedOf(const Graph& graph, const AutoPlacement& placement, NodeId node,
                                 std::vector<Placements> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto found = placement.space.shared_of.find(graph.result(node, i));
    if (found == placement.space.shared_of.end()) continue;
    const SearchSpace::Variable& shared =
        placement.space.variables[static_cast<size_t>(found->second)];
    results[i] = shared.strategies[ChoiceOf(placement, found->second)].results[0];
  }
  return results;
}

}  // namespace

std::string PlanText(const Graph& graph, const AutoPlacement& placement, const Mesh& mesh,
                     std::string_view comment) {
  const Module& module = graph.module();
  Entries parameters, nodes;
  const std::map<NodeId, NodeKey> keys = NodeKeysOf(graph);
  for (const NodeId node : graph.nodes()) {
    std::string placements;
    if (graph.node(node).kind == NodeKind::kPlaceholder) {
      if (KindOf(graph, node) != PlacedInput::kParameter) continue;
      const std::vector<Placements>& held = StrategyOf(placement, node).results;
      const Type& type = module.types()[graph.value(graph.result(node)).type];
      bool is_uneven = false;
      for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        placements +=
            fmt::format(", {} = \"{}\"", mesh.axes()[axis].name, OnAxis(module, held, axis));
        is_uneven = is_uneven || IsUneven(module, type, held[0], axis, mesh);
      }
      if (is_uneven) placements += ", uneven = true";
      parameters.Add(graph.attribute(node, "fqn"), "name = ", "", placements);
    } else if (const auto key = keys.find(node); key != keys.end()) {
      const CallStrategy& strategy = StrategyOf(placement, node);
      const std::vector<Placements> shared = SharedOf(graph, placement, node, strategy.results);
      for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        placements += fmt::format(", {} = \"{} -> {}", mesh.axes()[axis].name,
                                  OnAxis(module, strategy.operands, axis),
                                  OnAxis(module, strategy.results, axis));
        if (!(shared == strategy.results)) placements += " => " + OnAxis(module, shared, axis);
        placements += '"';
      }
      const std::string index =
          key->second.index == 0 ? "" : fmt::format(", index = {}", key->second.index);
      nodes.Add(key->second.module, "module = ",
                fmt::format(", phase = \"{}\", op = \"{}\"{}", ToString(key->second.phase),
                            key->second.op, index),
                placements);
    }
  }
  std::string text;
  for (size_t begin = 0; begin < comment.size();) {
    const size_t end = std::min(comment.find('\n', begin), comment.size());
    text += fmt::format("# {}\n", comment.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!placement.output_entries.empty()) text += "output = [\n" + placement.output_entries + "]\n";
  return text + "parameter = [\n" + parameters.Text() + "]\nnode = [\n" + nodes.Text() + "]\n";
}

}  // namespace strata

#include "passes/placement/decided_outputs.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace strata {
namespace {

/// Whether forward or the loss reads `value` outside of the module at `path`.
bool Leaves(const Graph& graph, ValueId value, std::string_view path) {
  for (const Use use : graph.uses(value)) {
    const Node& user = graph.node(use.user);
    if (user.phase != Phase::kForward && user.phase != Phase::kLoss) continue;
    const std::string_view reader = user.module.valid() ? graph.module().str(user.module) : "";
    const bool is_inside =
        reader == path || (reader.starts_with(path) && reader.substr(path.size()).starts_with('.'));
    if (!is_inside) return true;
  }
  return false;
}

}  // namespace

std::vector<std::optional<Placement>> DecidedOutput(Graph& graph, const PlacementPlan& plan,
                                                    ValueId value) {
  const Node& node = graph.node(graph.value(value).def);
  if (node.kind != NodeKind::kCall || node.phase != Phase::kForward || !node.module.valid())
    return {};
  const std::string path(graph.module().str(node.module));
  if (!Leaves(graph, value, path)) return {};
  std::vector<std::optional<Placement>> decided;
  for (size_t axis = 0; axis < plan.mesh().axes().size(); ++axis)
    decided.push_back(plan.Output(graph.module(), path, axis));
  const bool is_none = std::ranges::none_of(decided, [](const auto& of) { return of.has_value(); });
  return is_none ? std::vector<std::optional<Placement>>() : decided;
}

Placements WithDecided(Placements placements,
                       const std::vector<std::optional<Placement>>& decided) {
  for (size_t axis = 0; axis < decided.size(); ++axis)
    if (decided[axis]) placements[axis] = *decided[axis];
  return placements;
}

}  // namespace strata

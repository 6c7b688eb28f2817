#include "passes/comm/reassign_groups.h"

#include <set>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "passes/comm/extra_group.h"
#include "passes/core/collectives.h"

namespace strata {
namespace {

bool GathersPlaceholder(const Graph& graph, NodeId launch) {
  NodeId node = launch;
  while (graph.node(node).kind == NodeKind::kCall) {
    node = OnlyInputOf(graph, node);
    if (!node.valid()) return false;
  }
  return graph.node(node).kind == NodeKind::kPlaceholder;
}

bool ReassignIn(Graph& graph) {
  std::vector<NodeId> gathers;
  std::set<std::string, std::less<>> sources;
  for (const NodeId node : graph.nodes()) {
    if (!IsCollective(graph, node, CollectiveKind::kAllGather) || HasExtraGroup(graph, node))
      continue;
    gathers.push_back(node);
    if (OnlyWaitOf(graph, node).valid() && GathersPlaceholder(graph, node))
      sources.emplace(GroupOf(graph, node));
  }
  Rewriter rewriter(graph);
  bool changed = false;
  for (const NodeId gather : gathers) {
    const std::string group(GroupOf(graph, gather));
    if (!sources.contains(group)) continue;
    SetGroup(rewriter, gather, ExtraGroup(group, kGatherPurpose));
    changed = true;
  }
  return changed;
}

}  // namespace

Result<Changed> ReassignGroups::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs())
    changed |= ReassignIn(module.graph(id));
  return Changed(changed);
}

}  // namespace strata

#include "passes/comm/isolate_experts.h"

#include <set>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "passes/comm/extra_group.h"
#include "passes/core/collectives.h"

namespace strata {
namespace {

bool IsolateIn(Graph& graph) {
  std::vector<NodeId> exchanges;
  std::set<std::string, std::less<>> others;
  for (const NodeId node : graph.nodes()) {
    const auto kind = CollectiveOf(graph, node);
    if (kind == CollectiveKind::kAllToAll) {
      exchanges.push_back(node);
    } else if (kind && kind != CollectiveKind::kBroadcast) {
      others.emplace(GroupOf(graph, node));
    }
  }
  Rewriter rewriter(graph);
  bool changed = false;
  for (const NodeId exchange : exchanges) {
    const std::string group(GroupOf(graph, exchange));
    if (group.empty() || !others.contains(group)) continue;
    SetGroup(rewriter, exchange, ExtraGroup(group, kExpertPurpose));
    changed = true;
  }
  return changed;
}

}  // namespace

Result<Changed> IsolateExpertGroups::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs())
    changed |= IsolateIn(module.graph(id));
  return Changed(changed);
}

}  // namespace strata

#include "passes/placement/node_key.h"

#include <tuple>

#include "ir/module.h"

namespace strata {

std::map<NodeId, NodeKey> NodeKeysOf(const Graph& graph) {
  std::map<NodeId, NodeKey> keys;
  std::map<std::tuple<StrId, Phase, StrId>, int64_t> counts;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::kCall) continue;
    const std::string_view module = node.module.valid() ? graph.module().str(node.module) : "";
    keys.emplace(id, NodeKey{.module = std::string(module),
                             .phase = node.phase,
                             .op = std::string(graph.op(id)),
                             .index = counts[{node.module, node.phase, node.op}]++});
  }
  return keys;
}

}  // namespace strata

#include "passes/simulate/collective_uses.h"

#include <map>
#include <tuple>
#include <utility>

#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/simulate/expected_sizes.h"

namespace strata {

std::vector<CollectiveUse> CollectiveUses(const Graph& graph) {
  std::map<std::tuple<Phase, std::string, std::string>, CollectiveUse> uses;
  const ExpectedSizes expected(graph);
  for (const NodeId node : graph.nodes()) {
    if (!CollectiveOf(graph, node)) continue;
    const Phase phase = graph.node(node).phase;
    const std::string group(GroupOf(graph, node)), op(BaseName(graph.op(node)));
    CollectiveUse& use = uses.try_emplace({phase, group, op},
                                          CollectiveUse{.phase = phase, .group = group, .op = op})
                             .first->second;
    ++use.count;
    use.bytes += static_cast<int64_t>(expected.CollectiveBytes(node));
  }
  std::vector<CollectiveUse> all;
  for (auto& [key, use] : uses)
    all.push_back(std::move(use));
  return all;
}

}  // namespace strata

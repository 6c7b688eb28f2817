#include "runtime/plan/assertions.h"

#include <algorithm>
#include <string_view>

namespace strata {

bool OnlyAsserts(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (op == "aten._assert_scalar.default" || op.starts_with("aten.sym_constrain_range"))
    return true;
  if (!op.starts_with("_operator.") || !graph.HasUses(node)) return false;
  return std::ranges::all_of(graph.uses(graph.result(node)), [&](const Use& use) {
    return graph.node(use.user).kind == NodeKind::kCall && OnlyAsserts(graph, use.user);
  });
}

}  // namespace strata

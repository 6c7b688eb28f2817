#include "prove/sizes/element_read.h"

#include <string_view>

namespace strata::prove {

std::optional<ElementRead> ElementReadBy(const Graph& graph, NodeId node) {
  const auto is_call = [&](NodeId called, std::string_view op) {
    return graph.node(called).kind == NodeKind::kCall && graph.op(called) == op;
  };
  if (!is_call(node, "aten._local_scalar_dense.default")) return std::nullopt;
  const auto args = graph.args(node);
  if (args.empty() || !args[0].is_value()) return std::nullopt;
  const NodeId select = graph.value(args[0].value()).def;
  if (!is_call(select, "aten.select.int")) return std::nullopt;
  const auto selected = graph.args(select);
  const bool is_of_first_dim = selected.size() == 3 && selected[0].is_value() &&
                               selected[1].kind() == ArgKind::kInt && selected[1].as_int() == 0 &&
                               selected[2].kind() == ArgKind::kInt;
  if (!is_of_first_dim) return std::nullopt;
  return ElementRead{selected[0].value(), select, selected[2].as_int()};
}

}  // namespace strata::prove

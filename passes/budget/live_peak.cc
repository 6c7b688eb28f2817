#include "passes/budget/live_peak.h"

#include <algorithm>
#include <vector>

#include "ir/by_node.h"
#include "ir/module.h"
#include "passes/core/written_memory.h"
#include "passes/memory/offloadable.h"

namespace strata {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

int64_t OwnLiveBytes(const Graph& graph, ValueId value) {
  const Value& v = graph.value(value);
  const bool is_made = graph.node(v.def).kind == NodeKind::kCall && graph.op(v.def) != kOffloadOp;
  if (!is_made || OwnerOf(graph, value) != value || !v.type.valid()) return 0;
  const int64_t bytes = graph.module().types().Bytes(v.type).value_or(0);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t LivePeakBytes(const Graph& graph) {
  return LivePeakBytes(graph, PositionsOf(graph));
}

int64_t LivePeakBytes(const Graph& graph, const IdVector<NodeId, int32_t>& position) {
  IdVector<ValueId, int32_t> last = ByValue(graph, -1);  // of owners
  std::vector<int64_t> change(static_cast<size_t>(graph.num_nodes()) + 1, 0);
  for (const NodeId node : graph.nodes()) {
    const int32_t at = position[node];
    size_t operand_index = 0;
    graph.ForEachOperand(node, [&](ValueId operand) {
      // The last reader that a wait names orders nodes only.
      if (graph.op(node) == kTransferWaitOp && operand_index++ == 2) return;
      int32_t& end = last[OwnerOf(graph, operand)];
      end = std::max(end, at);
    });
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      int32_t& end = last[graph.result(node, i)];
      end = std::max(end, at);
    }
  }
  for (const NodeId node : graph.nodes()) {
    const int32_t at = position[node];
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId value = graph.result(node, i);
      const int64_t bytes = OwnLiveBytes(graph, value);
      change[static_cast<size_t>(at)] += bytes;
      change[static_cast<size_t>(last[value]) + 1] -= bytes;
    }
  }
  int64_t live = 0, peak = 0;
  for (const int64_t delta : change)
    peak = std::max(peak, live += delta);
  return peak;
}

}  // namespace strata

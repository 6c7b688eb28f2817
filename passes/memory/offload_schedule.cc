#include "passes/memory/offload_schedule.h"

#include <algorithm>
#include <optional>

#include "ir/by_node.h"
#include "passes/memory/tags.h"

namespace strata {

OffloadSchedule::OffloadSchedule(const Graph& graph)
    : graph_(graph), position_(PositionsOf(graph)), region_of_(ByNode(graph, -1)) {
  bool is_before_backward = true;
  std::optional<int64_t> forward_layer, backward_layer;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const int64_t layer = LayerNumber(ModuleOf(graph, node));
    if (IsBackward(graph, node)) {
      is_before_backward = false;
      if (backward_layer == layer) continue;
      backward_layer = layer;
      if (run_of_layer_.try_emplace(layer, run_starts_.size()).second) run_starts_.push_back(node);
    } else if (is_before_backward) {
      if (forward_layer != layer) region_ends_.emplace_back();
      forward_layer = layer;
      region_ends_.back() = node;
      region_of_[node] = static_cast<int32_t>(region_ends_.size()) - 1;
    }
  }
}

NodeId OffloadSchedule::AwaitAfter(NodeId node, NodeId last_use, int64_t defer) const {
  const int32_t own = region_of_[node];
  const int32_t last = region_of_[last_use];
  if (defer <= 0 || own < 0 || last < 0) return last_use;
  const auto end = static_cast<int64_t>(region_ends_.size()) - 1;
  const int64_t target = std::min(std::max(own + defer, int64_t{last}), end);
  return region_ends_[static_cast<size_t>(target)];
}

NodeId OffloadSchedule::ReloadBefore(NodeId node, NodeId first_reader, NodeId awaited,
                                     int64_t prefetch) const {
  const auto run = run_of_layer_.find(LayerNumber(ModuleOf(graph_, node)));
  if (prefetch <= 0 || run == run_of_layer_.end()) return first_reader;
  const int64_t target = std::max<int64_t>(0, static_cast<int64_t>(run->second) - prefetch);
  const NodeId anchor = run_starts_[static_cast<size_t>(target)];
  const bool is_earlier = position(anchor) < position(first_reader);
  return is_earlier && position(anchor) > position(awaited) ? anchor : first_reader;
}

}  // namespace strata

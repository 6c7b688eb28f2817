#include "passes/memory/max_flow.h"

#include <algorithm>

namespace strata {

void FlowNetwork::AddEdge(int32_t from, int32_t to, int64_t capacity) {
  edges_of_[static_cast<size_t>(from)].push_back(static_cast<int32_t>(edges_.size()));
  edges_.push_back({.to = to, .left = capacity});
  edges_of_[static_cast<size_t>(to)].push_back(static_cast<int32_t>(edges_.size()));
  edges_.push_back({.to = from, .left = 0});
}

bool FlowNetwork::FindLevels(int32_t source, int32_t sink) {
  level_.assign(edges_of_.size(), -1);
  level_[static_cast<size_t>(source)] = 0;
  std::vector<int32_t> queue = {source};
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto at = static_cast<size_t>(queue[i]);
    for (const int32_t edge : edges_of_[at]) {
      const Edge& e = edges_[static_cast<size_t>(edge)];
      if (e.left == 0 || level_[static_cast<size_t>(e.to)] >= 0) continue;
      level_[static_cast<size_t>(e.to)] = level_[at] + 1;
      queue.push_back(e.to);
    }
  }
  return level_[static_cast<size_t>(sink)] >= 0;
}

/// One path of the level graph; 0 when there is none. Without recursion: paths are as long as the
/// program.
int64_t FlowNetwork::Augment(int32_t source, int32_t sink) {
  std::vector<int32_t> path;  // edges
  int32_t at = source;
  while (at != sink) {
    std::vector<int32_t>& edges = edges_of_[static_cast<size_t>(at)];
    size_t& next = next_[static_cast<size_t>(at)];
    const auto leads_on = [&](int32_t edge) {
      const Edge& e = edges_[static_cast<size_t>(edge)];
      return e.left > 0 && level_[static_cast<size_t>(e.to)] == level_[static_cast<size_t>(at)] + 1;
    };
    while (next < edges.size() && !leads_on(edges[next]))
      ++next;
    if (next < edges.size()) {
      path.push_back(edges[next]);
      at = edges_[static_cast<size_t>(edges[next])].to;
    } else if (path.empty()) {
      return 0;
    } else {
      at = edges_[static_cast<size_t>(path.back() ^ 1)].to;
      path.pop_back();
      ++next_[static_cast<size_t>(at)];
    }
  }
  int64_t flow = kInfinite;
  for (const int32_t edge : path)
    flow = std::min(flow, edges_[static_cast<size_t>(edge)].left);
  for (const int32_t edge : path) {
    edges_[static_cast<size_t>(edge)].left -= flow;
    edges_[static_cast<size_t>(edge ^ 1)].left += flow;
  }
  return flow;
}

int64_t FlowNetwork::Run(int32_t source, int32_t sink) {
  int64_t total = 0;
  while (total < kInfinite && FindLevels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    for (int64_t flow = Augment(source, sink); flow > 0 && total < kInfinite;
         flow = Augment(source, sink))
      total += flow;
  }
  FindLevels(source, sink);
  source_side_.assign(level_.size(), false);
  for (size_t vertex = 0; vertex < level_.size(); ++vertex)
    source_side_[vertex] = level_[vertex] >= 0;
  return total;
}

}  // namespace strata

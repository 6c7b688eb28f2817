#include "passes/comm/moves.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "ir/by_node.h"
#include "passes/core/collectives.h"

namespace strata {

Positions::Positions(const Graph& graph) : graph_(graph), positions_(PositionsOf(graph)) {}

bool Positions::IsBefore(NodeId a, NodeId b) const {
  const int32_t position = positions_[a];
  if (position != positions_[b]) return position < positions_[b];
  for (NodeId next = graph_.node(a).next; next.valid(); next = graph_.node(next).next) {
    if (next == b) return true;
    if (positions_[next] != position) return false;
  }
  return false;
}

void Positions::PlaceBeside(NodeId node, NodeId other) {
  if (positions_.size() <= static_cast<size_t>(node.index))
    positions_.resize(static_cast<size_t>(node.index) + 1, -1);
  positions_[node] = positions_[other];
}

void HoistBefore(Rewriter& rewriter, Positions& positions, NodeId node, NodeId before) {
  const Graph& graph = rewriter.graph();
  std::vector<NodeId> open = {node};
  while (!open.empty()) {
    const NodeId top = open.back();
    if (top == before || positions.IsBefore(top, before)) {
      open.pop_back();
      continue;
    }
    const auto num_open = static_cast<std::ptrdiff_t>(open.size());
    graph.ForEachOperand(top, [&](ValueId operand) {
      const NodeId def = graph.value(operand).def;
      if (positions.IsBefore(before, def)) open.push_back(def);
    });
    if (open.begin() + num_open != open.end()) {  // these first
      std::reverse(open.begin() + num_open, open.end());
      continue;
    }
    open.pop_back();
    rewriter.MoveBefore(top, before);
    positions.PlaceBeside(top, before);
  }
}

std::vector<NodeId> ReadersBefore(const Graph& graph, const Positions& positions, NodeId node,
                                  NodeId limit) {
  struct Visit {
    NodeId node;
    std::vector<NodeId> users;
  };
  std::vector<NodeId> postorder;
  std::set<NodeId> seen;
  std::vector<Visit> open;
  open.push_back({node, UsersOf(graph, node)});
  while (!open.empty()) {
    if (open.back().users.empty()) {
      postorder.push_back(open.back().node);
      open.pop_back();
      continue;
    }
    const NodeId user = open.back().users.back();
    open.back().users.pop_back();
    if (positions.IsBefore(user, limit) && seen.insert(user).second)
      open.push_back({user, UsersOf(graph, user)});
  }
  postorder.pop_back();  // `node` itself
  std::ranges::reverse(postorder);
  return postorder;
}

}  // namespace strata

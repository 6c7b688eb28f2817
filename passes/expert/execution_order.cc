#include "passes/expert/execution_order.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

void AddOnce(std::vector<NodeId>& nodes, NodeId node) {
  if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
}

bool IsCommunication(const Graph& graph, NodeId node) {
  return TraitsOf(graph.op(node)).collective || BaseName(graph.op(node)) == "wait_tensor";
}

}  // namespace

ExecutionOrder::ExecutionOrder(const Graph& graph)
    : graph_(graph), position_(PositionsOf(graph)), before_(ByNode<std::vector<NodeId>>(graph)) {
  NodeId last_effect;
  for (const NodeId node : graph.nodes()) {
    std::vector<NodeId>& before = before_[node];
    graph.ForEachOperand(node, [&](ValueId operand) { AddOnce(before, graph.value(operand).def); });
    if (graph.node(node).kind != NodeKind::kCall || IsCommunication(graph, node)) continue;
    const OpTraits traits = TraitsOf(graph.op(node));
    if (!traits.effectful && !traits.random) continue;
    if (last_effect.valid()) AddOnce(before, last_effect);
    last_effect = node;
  }
  AddMemory();
}

void ExecutionOrder::AddMemory() {
  const std::set<ValueId> written = WrittenMemory(graph_);
  if (written.empty()) return;
  struct Accesses {
    NodeId last_write;
    std::vector<NodeId> reads;  // since then
  };
  std::unordered_map<ValueId, Accesses> accesses;
  for (const NodeId node : graph_.nodes()) {
    const bool writes = Mutates(graph_, node);
    std::vector<ValueId> owners;
    graph_.ForEachOperand(node, [&](ValueId operand) {
      const ValueId owner = OwnerOf(graph_, operand);
      if (written.contains(owner) && std::ranges::find(owners, owner) == owners.end())
        owners.push_back(owner);
    });
    for (const ValueId owner : owners) {
      Accesses& access = accesses[owner];
      std::vector<NodeId>& before = before_[node];
      if (access.last_write.valid() && access.last_write != node)
        AddOnce(before, access.last_write);
      if (!writes) {
        access.reads.push_back(node);
        continue;
      }
      for (const NodeId read : access.reads)
        AddOnce(before, read);
      access = {.last_write = node, .reads = {}};
    }
  }
}

Result<std::vector<NodeId>> ExecutionOrder::Sort(
    const std::map<NodeId, std::vector<NodeId>>& extra) const {
  std::vector<NodeId> pending = graph_.nodes().Snapshot();
  const size_t count = pending.size();
  std::ranges::reverse(pending);
  IdVector<NodeId, bool> is_ready = ByNode<bool>(graph_);
  std::unordered_map<NodeId, std::vector<NodeId>> waiting;
  std::vector<NodeId> sorted;
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    if (node == graph_.output()) continue;
    NodeId missing;
    const auto check = [&](const std::vector<NodeId>& nodes) {
      for (const NodeId other : nodes)
        if (!is_ready[other]) missing = other;
    };
    check(Before(node));
    if (const auto found = extra.find(node); found != extra.end()) check(found->second);
    if (missing.valid()) {
      waiting[missing].push_back(node);
      continue;
    }
    is_ready[node] = true;
    sorted.push_back(node);
    const auto freed = waiting.find(node);
    if (freed == waiting.end()) continue;
    pending.insert(pending.end(), freed->second.rbegin(), freed->second.rend());
    waiting.erase(freed);
  }
  if (graph_.output().valid()) sorted.push_back(graph_.output());
  if (sorted.size() == count) return sorted;
  for (const NodeId node : graph_.nodes()) {
    if (is_ready[node] || node == graph_.output()) continue;
    return Error(ErrorCode::kInternal, "an order of nodes has a cycle: graph {}: node {} ({})",
                 graph_.name_text(), graph_.name(node), graph_.op(node));
  }
  return sorted;
}

}  // namespace strata

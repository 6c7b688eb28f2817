#include "passes/comm/fsdp_collectives.h"

#include <set>

#include "passes/core/written_memory.h"

namespace strata {
namespace {

/// How many placeholders a node reads: none, the one of this index, or several.
constexpr int32_t kNoPlaceholder = -1, kSeveral = -2;

bool IsGatheredInput(const Graph& graph, NodeId placeholder, const std::set<ValueId>& written) {
  return graph.attribute(placeholder, "input") != "batch" &&
         !written.contains(graph.result(placeholder));
}

}  // namespace

FsdpCollectives::FsdpCollectives(const Graph& graph)
    : graph_(graph),
      is_fsdp_(static_cast<size_t>(graph.node_bound())),
      reads_one_(static_cast<size_t>(graph.node_bound())) {
  FindGathers();
  FindReductions();
  for (const NodeId node : graph.nodes())
    if (is_fsdp_[node]) launches_.push_back(node);
}

void FsdpCollectives::FindGathers() {
  const std::set<ValueId> written = WrittenMemory(graph_);
  IdVector<NodeId, int32_t> source(static_cast<size_t>(graph_.node_bound()), kNoPlaceholder);
  for (const NodeId node : graph_.nodes()) {
    if (graph_.node(node).kind == NodeKind::kPlaceholder) {
      source[node] = IsGatheredInput(graph_, node, written) ? node.index : kSeveral;
      continue;
    }
    graph_.ForEachOperand(node, [&](ValueId value) {
      const int32_t read = source[graph_.value(value).def];
      if (read == kNoPlaceholder) return;
      source[node] = source[node] == kNoPlaceholder || source[node] == read ? read : kSeveral;
    });
    reads_one_[node] = source[node] >= 0;
    is_fsdp_[node] = reads_one_[node] && IsCollective(graph_, node, CollectiveKind::kAllGather) &&
                     OnlyWaitOf(graph_, node).valid();
  }
}

void FsdpCollectives::FindReductions() {
  // Whether all paths from a node lead through nodes with one input to the output.
  IdVector<NodeId, bool> leads_out(static_cast<size_t>(graph_.node_bound()));
  const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool leads = graph_.HasUses(*node);
    for (size_t i = 0; leads && i < graph_.node(*node).num_results; ++i) {
      for (const Use use : graph_.uses(graph_.result(*node, i))) {
        const bool is_output = graph_.node(use.user).kind == NodeKind::kOutput;
        leads &= is_output || (leads_out[use.user] && OnlyInputOf(graph_, use.user) == *node);
      }
    }
    leads_out[*node] = leads;
    const auto kind = CollectiveOf(graph_, *node);
    if (kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kAllReduce) continue;
    const NodeId wait = OnlyWaitOf(graph_, *node);
    is_fsdp_[*node] = wait.valid() && leads_out[wait];
  }
}

std::vector<NodeId> FsdpCollectives::Next(NodeId launch) const {
  std::vector<NodeId> next;
  std::set<NodeId> seen = {launch};
  std::vector<NodeId> open = {launch};
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const NodeId user : UsersOf(graph_, node)) {
      if (!seen.insert(user).second) continue;
      if (is_fsdp_[user]) {
        next.push_back(user);
      } else if (reads_one_[user] || OnlyInputOf(graph_, user).valid()) {
        open.push_back(user);
      }
    }
  }
  return next;
}

}  // namespace strata

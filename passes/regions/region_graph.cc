#include "passes/regions/region_graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <ranges>
#include <set>
#include <utility>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

/// A search for cycles that gets this far is given up, and the regions stay apart.
constexpr size_t kMaxVisited = 4000;

bool IsStatic(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return graph.value(value).num_uses == 0;
  const Type& type = graph.module().types()[id];
  const auto is_number = [&](DimId dim) { return graph.module().dims().AsConst(dim).has_value(); };
  return type.kind == TypeKind::kTensor && std::ranges::all_of(type.sizes, is_number) &&
         std::ranges::all_of(type.strides, is_number);
}

/// A body, for the node that runs it.
bool IsBody(const Graph& graph, ValueId value) {
  const NodeId def = graph.value(value).def;
  return graph.node(def).kind == NodeKind::kGetAttr && !graph.args(def).empty();
}

}  // namespace

RegionGraph::RegionGraph(const Graph& graph)
    : graph_(graph),
      position_(PositionsOf(graph)),
      next_ordered_(ByNode<NodeId>(graph)),
      is_ordered_(ByNode(graph, false)),
      can_join_(is_ordered_),
      region_of_(ByNode(graph, -1)) {
  FindMembers();
  Grow();
  Number();
}

/// What has effects or touches written memory keeps its order: a chain.
void RegionGraph::FindMembers() {
  const std::set<ValueId> written = WrittenMemory(graph_);
  NodeId last;
  for (const NodeId node : graph_.nodes()) {
    bool touches = Mutates(graph_, node);
    graph_.ForEachOperand(node, [&](ValueId value) {
      touches = touches || written.contains(OwnerOf(graph_, value));
    });
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      touches = touches || written.contains(OwnerOf(graph_, graph_.result(node, i)));
    const NodeKind kind = graph_.node(node).kind;
    if (kind == NodeKind::kPlaceholder || kind == NodeKind::kGetAttr) continue;
    is_ordered_[node] = touches || IsImpure(graph_, node);
    can_join_[node] = !is_ordered_[node] && MayBeMember(node);
    if (!is_ordered_[node]) continue;
    if (last.valid()) next_ordered_[last] = node;
    last = node;
  }
}

bool RegionGraph::MayBeMember(NodeId node) const {
  if (graph_.node(node).kind != NodeKind::kCall) return false;
  if (graph_.attribute(node, kCompileAttribute).empty()) return false;
  bool is_fine = true;
  graph_.ForEachOperand(node, [&](ValueId value) {
    is_fine = is_fine && (IsBody(graph_, value) || IsStatic(graph_, value));
  });
  for (size_t i = 0; i < graph_.node(node).num_results; ++i)
    is_fine = is_fine && IsStatic(graph_, graph_.result(node, i));
  return is_fine;
}

bool RegionGraph::AreCompatible(NodeId a, NodeId b) const {
  return graph_.node(a).phase == graph_.node(b).phase &&
         graph_.node(a).stream == graph_.node(b).stream &&
         graph_.attribute(a, kRegionAttribute) == graph_.attribute(b, kRegionAttribute);
}

template <class Fn>
void RegionGraph::ForEachSuccessor(NodeId node, Fn&& fn) const {
  for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
    for (const Use use : graph_.uses(graph_.result(node, i)))
      fn(use.user);
  }
  if (next_ordered_[node].valid()) fn(next_ordered_[node]);
}

/// Whether something outside comes after a member and before another. Other regions are one step:
/// what comes after a member of one comes after all of it.
bool RegionGraph::HasCycle(const std::vector<NodeId>& members) const {
  const std::set<NodeId> inside(members.begin(), members.end());
  const int32_t end = position_[members.back()];
  std::set<NodeId> visited;
  std::vector<NodeId> open;
  bool comes_back = false;
  const auto visit = [&](NodeId node) {
    if (inside.contains(node)) {
      comes_back = true;
    } else if (const int32_t region = region_of_[node]; region >= 0) {
      for (const NodeId member : regions_[static_cast<size_t>(region)])
        if (!inside.contains(member) && visited.insert(member).second) open.push_back(member);
    } else if (position_[node] < end && visited.insert(node).second) {
      open.push_back(node);
    }
  };
  for (const NodeId member : members) {
    ForEachSuccessor(member, [&](NodeId node) {
      if (!inside.contains(node)) visit(node);
    });
  }
  while (!open.empty() && !comes_back && visited.size() <= kMaxVisited) {
    const NodeId node = open.back();
    open.pop_back();
    ForEachSuccessor(node, visit);
  }
  return comes_back || visited.size() > kMaxVisited;
}

void RegionGraph::Grow() {
  for (const NodeId node : graph_.nodes()) {
    if (!can_join_[node]) continue;
    std::vector<int32_t> producers;
    graph_.ForEachOperand(node, [&](ValueId value) {
      const NodeId def = graph_.value(value).def;
      const int32_t region = region_of_[def];
      if (region < 0 || !AreCompatible(def, node)) return;
      if (std::ranges::find(producers, region) == producers.end()) producers.push_back(region);
    });
    std::ranges::sort(producers, std::ranges::greater(), [&](int32_t region) {
      return position_[regions_[static_cast<size_t>(region)].back()];
    });
    std::vector<NodeId> group = {node};
    for (const int32_t region : producers) {
      std::vector<NodeId>& members = regions_[static_cast<size_t>(region)];
      std::vector<NodeId> all = group;
      all.insert(all.end(), members.begin(), members.end());
      std::ranges::sort(all, {}, [&](NodeId member) { return position_[member]; });
      if (HasCycle(all)) continue;
      group = std::move(all);
      members.clear();
    }
    for (const NodeId member : group)
      region_of_[member] = static_cast<int32_t>(regions_.size());
    regions_.push_back(std::move(group));
  }
}

/// Regions without members go.
void RegionGraph::Number() {
  std::erase_if(regions_, [](const std::vector<NodeId>& members) { return members.empty(); });
  std::ranges::sort(regions_, {},
                    [&](const std::vector<NodeId>& members) { return position_[members.front()]; });
  for (size_t i = 0; i < regions_.size(); ++i) {
    for (const NodeId member : regions_[i])
      region_of_[member] = static_cast<int32_t>(i);
  }
}

std::vector<RegionGraph::Unit> RegionGraph::Schedule() const {
  const size_t num_nodes = next_ordered_.size(), num_units = num_nodes + regions_.size();
  const auto unit_of = [&](NodeId node) {
    const int32_t region = region_of(node);
    return region >= 0 ? num_nodes + static_cast<size_t>(region) : static_cast<size_t>(node.index);
  };
  std::vector<std::vector<size_t>> followers(num_units);
  std::vector<int32_t> waits(num_units, 0), key(num_units, 0);
  std::vector<Unit> units(num_units);
  for (const NodeId node : graph_.nodes()) {
    const size_t unit = unit_of(node);
    key[unit] = std::max(key[unit], position_[node]);
    units[unit] = region_of(node) >= 0 ? Unit{{}, region_of(node)} : Unit{node, -1};
    ForEachSuccessor(node, [&](NodeId next) {
      if (unit_of(next) == unit) return;
      followers[unit].push_back(unit_of(next));
      ++waits[unit_of(next)];
    });
  }
  using Entry = std::pair<int32_t, size_t>;  // key, unit
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto is_unit = [&](size_t unit) {
    return units[unit].node.valid() || units[unit].region >= 0;
  };
  for (size_t unit = 0; unit < num_units; ++unit)
    if (is_unit(unit) && waits[unit] == 0) ready.emplace(key[unit], unit);
  std::vector<Unit> order;
  while (!ready.empty()) {
    const size_t unit = ready.top().second;
    ready.pop();
    order.push_back(units[unit]);
    for (const size_t next : followers[unit])
      if (--waits[next] == 0) ready.emplace(key[next], next);
  }
  STRATA_CHECK(static_cast<size_t>(std::ranges::count_if(std::views::iota(size_t{0}, num_units),
                                                         is_unit)) == order.size(),
               "regions of graph {} form a cycle", graph_.name_text());
  return order;
}

}  // namespace strata

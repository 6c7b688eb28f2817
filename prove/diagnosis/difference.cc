#include "prove/diagnosis/difference.h"

#include <algorithm>

#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "passes/placement/placement.h"

namespace strata::prove {
namespace {

std::set<StableId> IdsIn(const Graph& graph) {
  std::set<StableId> ids;
  for (const NodeId node : graph.nodes())
    ids.insert(graph.node(node).stable_id);
  return ids;
}

/// Of nodes whose results reach an output or memory that is written: what nothing reads is not a
/// part of the program.
std::set<StableId> LiveIdsIn(const Graph& graph) {
  std::set<NodeId> live;
  std::set<StableId> ids;
  const std::vector<NodeId> nodes = graph.nodes().Snapshot();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_end = graph.node(*node).kind != NodeKind::kCall || Mutates(graph, *node);
    const std::vector<NodeId> users = UsersOf(graph, *node);
    if (!is_end && std::ranges::none_of(users, [&](NodeId user) { return live.contains(user); }))
      continue;
    live.insert(*node);
    ids.insert(graph.node(*node).stable_id);
  }
  return ids;
}

Mesh MeshOf(const Graph& graph) {
  if (!graph.output().valid()) return {};
  auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
  return mesh ? *std::move(mesh) : Mesh();
}

}  // namespace

Difference::Difference(const Graph& before, NodeId expected, const Graph& after, NodeId node,
                       const ValueFacts& facts)
    : before(before),
      expected(expected),
      after(after),
      node(node),
      facts(facts),
      mesh(MeshOf(after)),
      before_ids(IdsIn(before)),
      after_ids(LiveIdsIn(after)),
      is_same(before.node(expected).stable_id == after.node(node).stable_id) {
  // Of a node that both have, its operands matter; else it is part of what differs.
  was = ConeOf(before, after_ids, mesh, expected, !is_same);
  is = ConeOf(after, before_ids, mesh, node, !is_same);
  // Of an operator that is left out nothing is made; a pass makes several of one, or masks its
  // parts.
  const bool has_place = std::ranges::find(is.computed, "axis_index") != is.computed.end();
  const bool are_more = is.computed.size() > was.computed.size() + 1;
  was.is_lowered_operator = was.has_rows || (was.is_lowered_operator && (has_place || are_more));
}

NodeId NodeWithId(const Graph& graph, StableId id) {
  for (const NodeId node : graph.nodes())
    if (graph.node(node).stable_id == id) return node;
  return {};
}

std::vector<StableId> RootsOfOperand(const Difference& d, const Graph& graph, ValueId operand,
                                     const std::set<StableId>& others) {
  std::vector<StableId> roots = ConeOf(graph, others, d.mesh, graph.value(operand).def, true).roots;
  std::ranges::sort(roots);
  roots.erase(std::ranges::unique(roots).begin(), roots.end());
  return roots;
}

}  // namespace strata::prove

#include "prove/diagnosis/difference.h"

#include <algorithm>

#include "passes/placement/placement.h"

namespace strata::prove {
namespace {

std::set<StableId> IdsIn(const Graph& graph) {
  std::set<StableId> ids;
  for (const NodeId node : graph.nodes())
    ids.insert(graph.node(node).stable_id);
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
      after_ids(IdsIn(after)),
      is_same(before.node(expected).stable_id == after.node(node).stable_id) {
  // Of a node that both have, its operands matter; else it is part of what differs.
  was = ConeOf(before, after_ids, mesh, expected, !is_same);
  is = ConeOf(after, before_ids, mesh, node, !is_same);
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

#include "scene/scene.h"

#include <algorithm>
#include <ranges>

#include "scene/parts.h"

namespace strata {
namespace {

using internal::Adjacency;

SceneStatus StatusOf(const PairStatus& status) {
  if (status.changed) return SceneStatus::kChanged;
  if (status.moved) return SceneStatus::kMoved;
  if (status.derived) return SceneStatus::kDerived;
  return SceneStatus::kSame;
}

bool IsBackward(const Listing& listing, EntityId id) {
  return listing.graph(id).node(listing[id].node).phase == Phase::kBackward;
}

/// After order, in which each removed node follows what it followed before.
void AddNodes(const GraphDiff& diff, Scene& scene) {
  IdVector<EntityId, std::vector<EntityId>> removed_after(diff.after.ids().size());
  std::vector<EntityId> removed_first;  // that follow no node of the after graph
  EntityId anchor;                      // the after entity that the next removed nodes follow
  for (EntityId id : diff.before.ids()) {
    const PairId pair = diff.pair_of_before[id];
    if (pair.valid()) {
      anchor = diff.pairs[pair].after;
    } else {
      (anchor.valid() ? removed_after[anchor] : removed_first).push_back(id);
    }
  }
  const auto add = [&](SceneNode node) {
    const bool after = node.after.valid();
    node.backward =
        after ? IsBackward(diff.after, node.after) : IsBackward(diff.before, node.before);
    scene.has_backward |= node.backward;
    scene.nodes.Add(node);
  };
  const auto add_removed = [&](const std::vector<EntityId>& removed) {
    for (EntityId id : removed)
      add({.before = id, .after = {}, .status = SceneStatus::kRemoved});
  };
  scene.nodes.reserve(diff.pairs.size() + diff.inserted.size() + diff.deleted.size());
  add_removed(removed_first);
  for (EntityId id : diff.after.ids()) {
    const PairId pair = diff.pair_of_after[id];
    if (pair.valid()) {
      const Pair& p = diff.pairs[pair];
      add({.before = p.before, .after = id, .status = StatusOf(p.status), .pair = pair});
    } else {
      add({.before = {}, .after = id, .status = SceneStatus::kAdded});
    }
    add_removed(removed_after[id]);
  }
}

/// The scene nodes of the entities that `id` reads, each once; an element reads its tuple.
void FindReads(const Listing& listing, EntityId id, const IdVector<EntityId, SceneNodeId>& node_of,
               std::vector<SceneNodeId>& reads) {
  reads.clear();
  if (!id.valid()) return;
  const Entity& entity = listing[id];
  if (entity.element.valid()) {
    reads.push_back(node_of[listing.Find(entity.graph, entity.node)]);
    return;
  }
  listing.graph(id).ForEachOperand(entity.node, [&](ValueId value) {
    const EntityId source = listing.FindValue(entity.graph, value);
    if (source.valid()) reads.push_back(node_of[source]);
  });
  std::ranges::sort(reads);
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
}

void AddEdges(const GraphDiff& diff, Scene& scene) {
  IdVector<EntityId, SceneNodeId> of_before(diff.before.ids().size());
  IdVector<EntityId, SceneNodeId> of_after(diff.after.ids().size());
  for (SceneNodeId id : IdsOf(scene.nodes)) {
    const SceneNode& node = scene.nodes[id];
    if (node.before.valid()) of_before[node.before] = id;
    if (node.after.valid()) of_after[node.after] = id;
  }
  std::vector<SceneNodeId> before, after;
  for (SceneNodeId to : IdsOf(scene.nodes)) {
    const SceneNode& node = scene.nodes[to];
    FindReads(diff.before, node.before, of_before, before);
    FindReads(diff.after, node.after, of_after, after);
    size_t b = 0, a = 0;
    while (b < before.size() || a < after.size()) {
      if (a == after.size() || (b < before.size() && before[b] < after[a])) {
        scene.edges.Add({before[b++], to, SceneStatus::kRemoved});
      } else if (b == before.size() || after[a] < before[b]) {
        scene.edges.Add({after[a++], to, SceneStatus::kAdded});
      } else {
        scene.edges.Add({after[a++], to, SceneStatus::kSame});
        ++b;
      }
    }
    // All edges of a node that is on one side only are of that side; the node says so already.
    if (node.status != SceneStatus::kAdded && node.status != SceneStatus::kRemoved) continue;
    const SceneStatus own = node.status;
    for (SceneEdge& edge : std::views::reverse(scene.edges)) {
      if (edge.to != to) break;
      edge.status = own;
    }
  }
}

Adjacency Collect(const Scene& scene, bool producers) {
  Adjacency result;
  result.begin.assign(scene.nodes.size() + 1, 0);
  for (const SceneEdge& edge : scene.edges) {
    ++result.begin[static_cast<size_t>((producers ? edge.to : edge.from).index) + 1];
  }
  for (size_t i = 1; i < result.begin.size(); ++i)
    result.begin[i] += result.begin[i - 1];
  result.target.resize(scene.edges.size());
  std::vector<int32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (const SceneEdge& edge : scene.edges) {
    const SceneNodeId of = producers ? edge.to : edge.from;
    result.target[static_cast<size_t>(next[static_cast<size_t>(of.index)]++)] =
        producers ? edge.from : edge.to;
  }
  return result;
}

}  // namespace

namespace internal {

Adjacency Producers(const Scene& scene) {
  return Collect(scene, true);
}
Adjacency Consumers(const Scene& scene) {
  return Collect(scene, false);
}

}  // namespace internal

std::string_view ToString(SceneStatus status) {
  switch (status) {
    case SceneStatus::kSame:
      return "same";
    case SceneStatus::kAdded:
      return "added";
    case SceneStatus::kRemoved:
      return "removed";
    case SceneStatus::kChanged:
      return "changed";
    case SceneStatus::kDerived:
      return "derived";
    case SceneStatus::kMoved:
      return "moved";
  }
  return "same";
}

SceneCounts& SceneCounts::operator+=(const SceneCounts& other) {
  nodes += other.nodes;
  added += other.added;
  removed += other.removed;
  changed += other.changed;
  derived += other.derived;
  moved += other.moved;
  return *this;
}

IdVector<SceneNodeId, IdRange<SceneEdgeId>> EdgesTo(const Scene& scene) {
  IdVector<SceneNodeId, IdRange<SceneEdgeId>> edges(scene.nodes.size(), IdRange<SceneEdgeId>(0));
  for (SceneEdgeId id : IdsOf(scene.edges)) {
    IdRange<SceneEdgeId>& range = edges[scene.edges[id].to];
    range = {range.size() == 0 ? id : range.begin_id(), SceneEdgeId{id.index + 1}};
  }
  return edges;
}

Scene MakeScene(const GraphDiff& diff, const SceneOptions& options) {
  Scene scene;
  AddNodes(diff, scene);
  AddEdges(diff, scene);
  internal::MakeClusters(diff, options, scene);
  internal::LayOut(options, scene);
  return scene;
}

}  // namespace strata

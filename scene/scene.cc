#include "scene/scene.h"

#include <algorithm>

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
    scene.nodes.push_back(node);
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
void FindReads(const Listing& listing, EntityId id, const IdVector<EntityId, int32_t>& node_of,
               std::vector<int32_t>& reads) {
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
  IdVector<EntityId, int32_t> of_before(diff.before.ids().size(), -1);
  IdVector<EntityId, int32_t> of_after(diff.after.ids().size(), -1);
  for (size_t i = 0; i < scene.nodes.size(); ++i) {
    const SceneNode& node = scene.nodes[i];
    const auto index = static_cast<int32_t>(i);
    if (node.before.valid()) of_before[node.before] = index;
    if (node.after.valid()) of_after[node.after] = index;
  }
  std::vector<int32_t> before, after;
  for (size_t i = 0; i < scene.nodes.size(); ++i) {
    const SceneNode& node = scene.nodes[i];
    FindReads(diff.before, node.before, of_before, before);
    FindReads(diff.after, node.after, of_after, after);
    const auto to = static_cast<int32_t>(i);
    size_t b = 0, a = 0;
    while (b < before.size() || a < after.size()) {
      if (a == after.size() || (b < before.size() && before[b] < after[a])) {
        scene.edges.push_back({before[b++], to, SceneStatus::kRemoved});
      } else if (b == before.size() || after[a] < before[b]) {
        scene.edges.push_back({after[a++], to, SceneStatus::kAdded});
      } else {
        scene.edges.push_back({after[a++], to, SceneStatus::kSame});
        ++b;
      }
    }
    // All edges of a node that is on one side only are of that side; the node says so already.
    if (node.status != SceneStatus::kAdded && node.status != SceneStatus::kRemoved) continue;
    const SceneStatus own = node.status;
    for (auto edge = scene.edges.rbegin(); edge != scene.edges.rend() && edge->to == to; ++edge) {
      edge->status = own;
    }
  }
}

Adjacency Collect(const Scene& scene, bool producers) {
  Adjacency result;
  result.begin.assign(scene.nodes.size() + 1, 0);
  for (const SceneEdge& edge : scene.edges) {
    ++result.begin[static_cast<size_t>(producers ? edge.to : edge.from) + 1];
  }
  for (size_t i = 1; i < result.begin.size(); ++i)
    result.begin[i] += result.begin[i - 1];
  result.target.resize(scene.edges.size());
  std::vector<int32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (const SceneEdge& edge : scene.edges) {
    const int32_t of = producers ? edge.to : edge.from;
    result.target[static_cast<size_t>(next[static_cast<size_t>(of)]++)] =
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

Scene MakeScene(const GraphDiff& diff, const SceneOptions& options) {
  Scene scene;
  AddNodes(diff, scene);
  AddEdges(diff, scene);
  internal::MakeClusters(diff, options, scene);
  internal::LayOut(options, scene);
  return scene;
}

}  // namespace strata

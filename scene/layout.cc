#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>

#include "base/id.h"
#include "scene/index.h"
#include "scene/lane_layouts.h"
#include "scene/open_slabs.h"
#include "scene/parts.h"

namespace strata::internal {
namespace {

constexpr int kSlabsPerRow = 4;

class Layout {
 public:
  Layout(const SceneOptions& options, LaneLayouts& lanes, Scene& scene)
      : options_(options),
        lanes_(lanes),
        scene_(scene),
        producers_(Producers(scene)),
        consumers_(Consumers(scene)),
        children_(ChildrenOf(scene)),
        first_forward_(scene.clusters.size(), kNoOrder),
        last_backward_(scene.clusters.size()),
        item_of_(scene.nodes.size()) {}

  void Run() {
    FindPlaces();
    FindIndependentSiblings();
    FindDistances();
    for (ClusterId id : IdsOf(scene_.clusters))
      LayOutCluster(id);
    FindSkips();
  }

 private:
  SceneCluster& cluster(ClusterId id) { return scene_.clusters[id]; }

  /// Where each subtree stands in the program.
  void FindPlaces() {
    for (ClusterId id = scene_.clusters.end_id(); id.index-- > 0;) {
      for (SceneNodeId node : Direct(id)) {
        if (scene_.nodes[node].backward) {
          last_backward_[id] = std::max(last_backward_[id], node);
        } else {
          first_forward_[id] = std::min(first_forward_[id], node);
        }
      }
      const ClusterId parent = cluster(id).parent;
      if (!parent.valid()) continue;
      first_forward_[parent] = std::min(first_forward_[parent], first_forward_[id]);
      last_backward_[parent] = std::max(last_backward_[parent], last_backward_[id]);
    }
  }

  /// Nodes of the cluster itself; they stand before those of its children.
  std::span<const SceneNodeId> Direct(ClusterId id) {
    const SceneCluster& c = cluster(id);
    const int32_t end =
        children_[id].empty() ? c.subtree_end : cluster(children_[id][0]).subtree_begin;
    return std::span(scene_.by_cluster).subspan(At(c.subtree_begin), At(end - c.subtree_begin));
  }

  /// How many slabs are around each.
  IdVector<ClusterId, int32_t> Depths() const {
    IdVector<ClusterId, int32_t> depths(scene_.clusters.size(), 0);
    for (ClusterId id : IdsOf(scene_.clusters)) {
      const ClusterId parent = scene_.clusters[id].parent;
      if (parent.valid()) depths[id] = depths[parent] + 1;
    }
    return depths;
  }

  /// Siblings share a row when no value flows from one to the other.
  void FindIndependentSiblings() {
    const IdVector<ClusterId, int32_t> depth = Depths();
    std::unordered_set<uint64_t> flows;
    const auto key = [](ClusterId a, ClusterId b) {
      return static_cast<uint64_t>(std::min(a, b).index) << 32 |
             static_cast<uint32_t>(std::max(a, b).index);
    };
    for (const SceneEdge& edge : scene_.edges) {
      ClusterId a = scene_.nodes[edge.from].cluster, b = scene_.nodes[edge.to].cluster;
      if (a == b) continue;
      while (depth[a] > depth[b])
        a = cluster(a).parent;
      while (depth[b] > depth[a])
        b = cluster(b).parent;
      while (a != b && cluster(a).parent != cluster(b).parent) {
        a = cluster(a).parent;
        b = cluster(b).parent;
      }
      if (a != b) flows.insert(key(a, b));
    }
    for (const std::vector<ClusterId>& siblings : children_) {
      size_t row = 0;  // first sibling of the row
      for (size_t i = 1; i < siblings.size(); ++i) {
        bool free = i - row < kSlabsPerRow && cluster(siblings[i]).repeats == 0;
        for (size_t j = row; free && j < i; ++j) {
          free =
              cluster(siblings[j]).repeats == 0 && !flows.contains(key(siblings[i], siblings[j]));
        }
        cluster(siblings[i]).joins_previous = free;
        if (!free) row = i;
      }
    }
  }

  void FindDistances() {
    std::vector<SceneNodeId> frontier, next;
    for (SceneNodeId node : IdsOf(scene_.nodes)) {
      if (scene_.nodes[node].status == SceneStatus::kSame) continue;
      scene_.nodes[node].distance = 0;
      frontier.push_back(node);
    }
    for (uint8_t distance = 1; distance < SceneNode::kFar; ++distance) {
      next.clear();
      for (SceneNodeId node : frontier) {
        for (const Adjacency* side : {&producers_, &consumers_}) {
          for (SceneNodeId other : side->of(node)) {
            if (scene_.nodes[other].distance <= distance) continue;
            scene_.nodes[other].distance = distance;
            next.push_back(other);
          }
        }
      }
      frontier.swap(next);
    }
  }

  void LayOutCluster(ClusterId id) {
    const std::span<const SceneNodeId> direct = Direct(id);
    const std::vector<ClusterId>& children = children_[id];
    // Slot s holds the nodes above child s and below child s-1, in both lanes.
    std::vector<std::vector<SceneNodeId>> slots(children.size() + 1);
    for (SceneNodeId node : direct) {
      const bool backward = scene_.nodes[node].backward;
      size_t slot = children.size();
      while (slot > 0 && !(backward ? last_backward_[children[slot - 1]] > node
                                    : first_forward_[children[slot - 1]] < node)) {
        --slot;
      }
      slots[slot].push_back(node);
    }
    std::vector<SceneBlock>& blocks = cluster(id).blocks;
    for (size_t s = 0; s <= children.size(); ++s) {
      if (!slots[s].empty()) blocks.push_back(Place(slots[s]));
      if (s == children.size()) break;
      if (blocks.empty() || blocks.back().clusters.empty()) blocks.emplace_back();
      blocks.back().clusters.push_back(children[s]);
    }
  }

  SceneBlock Place(std::span<const SceneNodeId> nodes) {
    SceneBlock block;
    int32_t rows[2] = {0, 0};
    for (int lane = 0; lane < 2; ++lane) {
      IdVector<LaneNodeId, SceneNodeId> members;
      for (SceneNodeId node : nodes) {
        if (scene_.nodes[node].backward == (lane == 1)) members.Add(node);
      }
      rows[lane] = PlaceLane(members, block);
    }
    block.rows = std::max(rows[0], rows[1]);
    for (ScenePlace& place : block.places) {
      if (place.backward) place.row = block.rows - 1 - place.row;
    }
    return block;
  }

  /// Rows of one lane, numbered in the direction of the flow.
  int32_t PlaceLane(const IdVector<LaneNodeId, SceneNodeId>& members, SceneBlock& block) {
    if (members.empty()) return 0;
    LaneShape shape{.nodes = static_cast<int32_t>(members.size()),
                    .edges = {},
                    .columns = options_.columns * (scene_.has_backward ? 1 : 2)};
    for (const LaneNodeId i : IdsOf(members))
      item_of_[members[i]] = i;
    for (const LaneNodeId to : IdsOf(members)) {
      for (SceneNodeId producer : producers_.of(members[to])) {
        const LaneNodeId from = item_of_[producer];
        // Against the order (a removed node among its successors) no edge constrains.
        if (from.valid() && from < to) shape.edges.emplace_back(from, to);
      }
    }
    for (SceneNodeId node : members)
      item_of_[node] = {};
    std::ranges::sort(shape.edges);
    shape.edges.erase(std::unique(shape.edges.begin(), shape.edges.end()), shape.edges.end());

    const LanePlaces& places = lanes_.Of(shape);
    std::vector<LaneNodeId> order;
    for (const LaneNodeId i : IdsOf(members))
      order.push_back(i);
    std::ranges::stable_sort(order, {},
                             [&](LaneNodeId i) { return std::pair(places.row[i], places.x[i]); });
    for (const LaneNodeId i : order) {
      block.places.push_back({.node = members[i],
                              .backward = scene_.nodes[members[i]].backward,
                              .row = places.row[i],
                              .x = places.x[i]});
    }
    return places.rows;
  }

  /// Values that pass over rows of an open slab: between parts of its sequence that are not
  /// neighbours, in the direction of the lane.
  void FindSkips() {
    constexpr size_t kMaxSkips = 12;
    // Of each cluster and node, its place in the sequence of the cluster above it.
    IdVector<ClusterId, int32_t> place_of_cluster(scene_.clusters.size(), 0);
    IdVector<SceneNodeId, int32_t> place_of_node(scene_.nodes.size(), 0);
    for (const SceneCluster& c : scene_.clusters) {
      int32_t place = 0;
      for (const SceneBlock& block : c.blocks) {
        for (ClusterId child : block.clusters)
          place_of_cluster[child] = place++;
        for (const ScenePlace& p : block.places)
          place_of_node[p.node] = place;
        if (block.clusters.empty()) ++place;
      }
    }
    const IdVector<ClusterId, int32_t> depth = Depths();
    for (const SceneEdge& edge : scene_.edges) {
      const SceneNode &from = scene_.nodes[edge.from], &to = scene_.nodes[edge.to];
      if (from.backward != to.backward) continue;
      ClusterId a = from.cluster, b = to.cluster;
      int32_t from_place = place_of_node[edge.from], to_place = place_of_node[edge.to];
      while (a != b) {
        ClusterId& deeper = depth[a] >= depth[b] ? a : b;
        (&deeper == &a ? from_place : to_place) = place_of_cluster[deeper];
        deeper = cluster(deeper).parent;
      }
      // Everything flows through the outermost slab; beside it a line would say nothing.
      if (a == Scene::kRoot) continue;
      const int32_t distance = from.backward ? from_place - to_place : to_place - from_place;
      if (distance < 2) continue;
      const SceneSkip skip = {from_place, to_place, from.backward, edge.status};
      std::vector<SceneSkip>& skips = cluster(a).skips;
      if (skips.size() < kMaxSkips && std::ranges::find(skips, skip) == skips.end()) {
        skips.push_back(skip);
      }
    }
  }

  const SceneOptions& options_;
  LaneLayouts& lanes_;
  Scene& scene_;
  Adjacency producers_, consumers_;
  IdVector<ClusterId, std::vector<ClusterId>> children_;
  IdVector<ClusterId, SceneNodeId> first_forward_, last_backward_;
  IdVector<SceneNodeId, LaneNodeId> item_of_;  // while its block is placed
};

}  // namespace

void LayOut(const SceneOptions& options, Scene& scene) {
  LaneLayouts own({.dot = false});
  Layout(options, options.lanes == nullptr ? own : *options.lanes, scene).Run();
}

}  // namespace strata::internal

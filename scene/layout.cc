#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_set>

#include "scene/index.h"
#include "scene/lane_layouts.h"
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
        children_(scene.clusters.size()),
        first_forward_(scene.clusters.size(), kNoOrder),
        last_backward_(scene.clusters.size(), -1),
        item_of_(scene.nodes.size(), -1) {}

  void Run() {
    FindChildren();
    FindPlaces();
    FindIndependentSiblings();
    FindDistances();
    for (size_t i = 0; i < scene_.clusters.size(); ++i)
      LayOutCluster(static_cast<int32_t>(i));
    FindSkips();
  }

 private:
  SceneCluster& cluster(int32_t index) { return scene_.clusters[At(index)]; }

  void FindChildren() {
    for (size_t i = 1; i < scene_.clusters.size(); ++i) {
      children_[At(scene_.clusters[i].parent)].push_back(static_cast<int32_t>(i));
    }
  }

  /// Where each subtree stands in the program.
  void FindPlaces() {
    for (size_t i = scene_.clusters.size(); i-- > 0;) {
      for (int32_t node : Direct(static_cast<int32_t>(i))) {
        if (scene_.nodes[At(node)].backward) {
          last_backward_[i] = std::max(last_backward_[i], node);
        } else {
          first_forward_[i] = std::min(first_forward_[i], node);
        }
      }
      const int32_t parent = scene_.clusters[i].parent;
      if (parent < 0) continue;
      first_forward_[At(parent)] = std::min(first_forward_[At(parent)], first_forward_[i]);
      last_backward_[At(parent)] = std::max(last_backward_[At(parent)], last_backward_[i]);
    }
  }

  /// Nodes of the cluster itself; they stand before those of its children.
  std::span<const int32_t> Direct(int32_t index) {
    const SceneCluster& c = cluster(index);
    const int32_t end = children_[At(index)].empty()
                            ? c.subtree_end
                            : cluster(children_[At(index)][0]).subtree_begin;
    return std::span(scene_.by_cluster).subspan(At(c.subtree_begin), At(end - c.subtree_begin));
  }

  /// Siblings share a row when no value flows from one to the other.
  void FindIndependentSiblings() {
    std::vector<int32_t> depth(scene_.clusters.size(), 0);
    for (size_t i = 1; i < depth.size(); ++i)
      depth[i] = depth[At(scene_.clusters[i].parent)] + 1;
    std::unordered_set<uint64_t> flows;
    const auto key = [](int32_t a, int32_t b) {
      return static_cast<uint64_t>(std::min(a, b)) << 32 | static_cast<uint32_t>(std::max(a, b));
    };
    for (const SceneEdge& edge : scene_.edges) {
      int32_t a = scene_.nodes[At(edge.from)].cluster, b = scene_.nodes[At(edge.to)].cluster;
      if (a == b) continue;
      while (depth[At(a)] > depth[At(b)])
        a = cluster(a).parent;
      while (depth[At(b)] > depth[At(a)])
        b = cluster(b).parent;
      while (a != b && cluster(a).parent != cluster(b).parent) {
        a = cluster(a).parent;
        b = cluster(b).parent;
      }
      if (a != b) flows.insert(key(a, b));
    }
    for (const std::vector<int32_t>& siblings : children_) {
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
    std::vector<int32_t> frontier, next;
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      if (scene_.nodes[i].status == SceneStatus::kSame) continue;
      scene_.nodes[i].distance = 0;
      frontier.push_back(static_cast<int32_t>(i));
    }
    for (uint8_t distance = 1; distance < SceneNode::kFar; ++distance) {
      next.clear();
      for (int32_t node : frontier) {
        for (const Adjacency* side : {&producers_, &consumers_}) {
          for (int32_t other : side->of(node)) {
            if (scene_.nodes[At(other)].distance <= distance) continue;
            scene_.nodes[At(other)].distance = distance;
            next.push_back(other);
          }
        }
      }
      frontier.swap(next);
    }
  }

  void LayOutCluster(int32_t index) {
    const std::span<const int32_t> direct = Direct(index);
    const std::vector<int32_t>& children = children_[At(index)];
    // Slot s holds the nodes above child s and below child s-1, in both lanes.
    std::vector<std::vector<int32_t>> slots(children.size() + 1);
    for (int32_t node : direct) {
      const bool backward = scene_.nodes[At(node)].backward;
      size_t slot = children.size();
      while (slot > 0 && !(backward ? last_backward_[At(children[slot - 1])] > node
                                    : first_forward_[At(children[slot - 1])] < node)) {
        --slot;
      }
      slots[slot].push_back(node);
    }
    std::vector<SceneBlock>& blocks = cluster(index).blocks;
    for (size_t s = 0; s <= children.size(); ++s) {
      if (!slots[s].empty()) blocks.push_back(Place(slots[s]));
      if (s == children.size()) break;
      if (blocks.empty() || blocks.back().clusters.empty()) blocks.emplace_back();
      blocks.back().clusters.push_back(children[s]);
    }
  }

  SceneBlock Place(std::span<const int32_t> nodes) {
    SceneBlock block;
    int32_t rows[2] = {0, 0};
    for (int lane = 0; lane < 2; ++lane) {
      std::vector<int32_t> members;
      for (int32_t node : nodes) {
        if (scene_.nodes[At(node)].backward == (lane == 1)) members.push_back(node);
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
  int32_t PlaceLane(const std::vector<int32_t>& members, SceneBlock& block) {
    if (members.empty()) return 0;
    LaneShape shape{.nodes = static_cast<int32_t>(members.size()),
                    .edges = {},
                    .columns = options_.columns * (scene_.has_backward ? 1 : 2)};
    for (int32_t i = 0; i < shape.nodes; ++i)
      item_of_[At(members[At(i)])] = i;
    for (int32_t to = 0; to < shape.nodes; ++to) {
      for (int32_t producer : producers_.of(members[At(to)])) {
        const int32_t from = item_of_[At(producer)];
        // Against the order (a removed node among its successors) no edge constrains.
        if (from >= 0 && from < to) shape.edges.emplace_back(from, to);
      }
    }
    for (int32_t node : members)
      item_of_[At(node)] = -1;
    std::ranges::sort(shape.edges);
    shape.edges.erase(std::unique(shape.edges.begin(), shape.edges.end()), shape.edges.end());

    const LanePlaces& places = lanes_.Of(shape);
    std::vector<int32_t> order(members.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, {}, [&](int32_t i) { return std::pair(places.row[At(i)], places.x[At(i)]); });
    for (int32_t i : order) {
      const int32_t node = members[At(i)];
      block.places.push_back({.node = node,
                              .backward = scene_.nodes[At(node)].backward,
                              .row = places.row[At(i)],
                              .x = places.x[At(i)]});
    }
    return places.rows;
  }

  /// Values that pass over rows of an open slab: between parts of its sequence that are not
  /// neighbours, in the direction of the lane.
  void FindSkips() {
    constexpr size_t kMaxSkips = 12;
    // Of each cluster and node, its place in the sequence of the cluster above it.
    std::vector<int32_t> place_of_cluster(scene_.clusters.size(), 0);
    std::vector<int32_t> place_of_node(scene_.nodes.size(), 0);
    for (const SceneCluster& c : scene_.clusters) {
      int32_t place = 0;
      for (const SceneBlock& block : c.blocks) {
        for (int32_t child : block.clusters)
          place_of_cluster[At(child)] = place++;
        for (const ScenePlace& p : block.places)
          place_of_node[At(p.node)] = place;
        if (block.clusters.empty()) ++place;
      }
    }
    std::vector<int32_t> depth(scene_.clusters.size(), 0);
    for (size_t i = 1; i < depth.size(); ++i)
      depth[i] = depth[At(scene_.clusters[i].parent)] + 1;
    for (const SceneEdge& edge : scene_.edges) {
      const SceneNode &from = scene_.nodes[At(edge.from)], &to = scene_.nodes[At(edge.to)];
      if (from.backward != to.backward) continue;
      int32_t a = from.cluster, b = to.cluster;
      int32_t from_place = place_of_node[At(edge.from)], to_place = place_of_node[At(edge.to)];
      while (a != b) {
        int32_t& deeper = depth[At(a)] >= depth[At(b)] ? a : b;
        (&deeper == &a ? from_place : to_place) = place_of_cluster[At(deeper)];
        deeper = cluster(deeper).parent;
      }
      // Everything flows through the outermost slab; beside it a line would say nothing.
      if (a == 0) continue;
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
  std::vector<std::vector<int32_t>> children_;
  std::vector<int32_t> first_forward_, last_backward_;  // per cluster, places in union order
  std::vector<int32_t> item_of_;                        // per node, while its block is placed
};

}  // namespace

void LayOut(const SceneOptions& options, Scene& scene) {
  LaneLayouts own({.dot = false});
  Layout(options, options.lanes == nullptr ? own : *options.lanes, scene).Run();
}

}  // namespace strata::internal

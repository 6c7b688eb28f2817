#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>

#include "scene/parts.h"

namespace strata::internal {
namespace {

constexpr int32_t kNoOrder = std::numeric_limits<int32_t>::max();
constexpr int kSlabsPerRow = 4;

size_t At(int32_t index) {
  return static_cast<size_t>(index);
}

class Layout {
 public:
  Layout(const SceneOptions& options, Scene& scene)
      : options_(options),
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
    FindVisible();
    for (size_t i = 0; i < scene_.clusters.size(); ++i)
      LayOutCluster(static_cast<int32_t>(i));
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

  /// What is not folded: differences, and what is at most `hops` edges away from one.
  void FindVisible() {
    visible_.assign(scene_.nodes.size(), false);
    std::vector<int32_t> frontier, next;
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      if (scene_.nodes[i].status == SceneStatus::kSame) continue;
      visible_[i] = true;
      frontier.push_back(static_cast<int32_t>(i));
    }
    for (int hop = 0; hop < options_.hops; ++hop) {
      next.clear();
      for (int32_t node : frontier) {
        for (const Adjacency* side : {&producers_, &consumers_}) {
          for (int32_t other : side->of(node)) {
            if (visible_[At(other)]) continue;
            visible_[At(other)] = true;
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
    const bool differs = cluster(index).counts.differences() > 0;
    bool folds = false;
    std::vector<SceneBlock> blocks, folded;
    for (size_t s = 0; s <= children.size(); ++s) {
      if (!slots[s].empty()) {
        blocks.push_back(Place(slots[s], false));
        if (differs) {
          folded.push_back(Place(slots[s], true));
          folds |= folded.back().places.size() < blocks.back().places.size();
        }
      }
      if (s == children.size()) break;
      for (std::vector<SceneBlock>* list : {&blocks, &folded}) {
        if (list->empty() || list->back().clusters.empty()) list->emplace_back();
        list->back().clusters.push_back(children[s]);
      }
    }
    cluster(index).blocks = std::move(blocks);
    if (folds) cluster(index).folded_blocks = std::move(folded);
  }

  /// A node or a fold while it is being placed.
  struct Item {
    std::vector<int32_t> nodes;  // several: a fold
    bool backward = false;
    int32_t layer = 0;
    double column = 0;  // left of the lane's middle is negative
    std::vector<int32_t> before, after;
  };

  std::vector<Item> MakeItems(std::span<const int32_t> nodes, bool fold) {
    std::vector<Item> items;
    int32_t open_fold[2] = {-1, -1};  // per lane: the fold that the next unchanged node joins
    for (int32_t node : nodes) {
      const bool backward = scene_.nodes[At(node)].backward;
      int32_t& open = open_fold[backward ? 1 : 0];
      if (fold && !visible_[At(node)] && open >= 0) {
        items[At(open)].nodes.push_back(node);
        item_of_[At(node)] = open;
        continue;
      }
      const auto index = static_cast<int32_t>(items.size());
      item_of_[At(node)] = index;
      items.push_back({.nodes = {node}, .backward = backward, .before = {}, .after = {}});
      open = fold && !visible_[At(node)] ? index : -1;
    }
    return items;
  }

  void Connect(std::span<const int32_t> nodes, std::vector<Item>& items) {
    for (int32_t node : nodes) {
      const int32_t to = item_of_[At(node)];
      for (int32_t producer : producers_.of(node)) {
        const int32_t from = item_of_[At(producer)];
        // Against the order (a removed node among its successors) no edge constrains.
        if (from < 0 || from >= to || items[At(from)].backward != items[At(to)].backward) continue;
        items[At(to)].before.push_back(from);
        items[At(from)].after.push_back(to);
      }
    }
  }

  static void AssignLayers(std::vector<Item>& items) {
    for (Item& item : items) {
      for (int32_t from : item.before)
        item.layer = std::max(item.layer, items[At(from)].layer + 1);
    }
    // What has nothing above it sinks to what reads it.
    for (size_t i = items.size(); i-- > 0;) {
      Item& item = items[i];
      if (!item.before.empty() || item.after.empty()) continue;
      int32_t lowest = kNoOrder;
      for (int32_t to : item.after)
        lowest = std::min(lowest, items[At(to)].layer);
      item.layer = std::max(item.layer, lowest - 1);
    }
  }

  SceneBlock Place(std::span<const int32_t> nodes, bool fold) {
    std::vector<Item> items = MakeItems(nodes, fold);
    Connect(nodes, items);
    for (int32_t node : nodes)
      item_of_[At(node)] = -1;
    AssignLayers(items);

    SceneBlock block;
    block.places.resize(items.size());
    int32_t rows[2] = {0, 0};
    for (int lane = 0; lane < 2; ++lane) {
      rows[lane] = PlaceLane(items, lane == 1, block);
    }
    block.rows = std::max(rows[0], rows[1]);
    for (ScenePlace& place : block.places) {
      if (place.backward) place.row = block.rows - 1 - place.row;
    }
    return block;
  }

  /// Rows of one lane, numbered in the direction of the flow.
  int32_t PlaceLane(std::vector<Item>& items, bool backward, SceneBlock& block) {
    std::vector<std::vector<int32_t>> layers;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].backward != backward) continue;
      if (layers.size() <= At(items[i].layer)) layers.resize(At(items[i].layer) + 1);
      layers[At(items[i].layer)].push_back(static_cast<int32_t>(i));
    }
    const auto columns = static_cast<size_t>(options_.columns * (scene_.has_backward ? 1 : 2));
    int32_t row = 0;
    for (std::vector<int32_t>& layer : layers) {
      // Under what it reads: mean place of the producers.
      const auto wish = [&](int32_t i) {
        const Item& item = items[At(i)];
        if (item.before.empty()) return 0.0;
        double sum = 0;
        for (int32_t from : item.before)
          sum += items[At(from)].column;
        return sum / static_cast<double>(item.before.size());
      };
      if (layer.size() <= columns) std::ranges::stable_sort(layer, {}, wish);
      for (size_t begin = 0; begin < layer.size(); begin += columns, ++row) {
        const size_t count = std::min(columns, layer.size() - begin);
        for (size_t k = 0; k < count; ++k) {
          const int32_t i = layer[begin + k];
          Item& item = items[At(i)];
          item.column = static_cast<double>(k) - static_cast<double>(count - 1) / 2;
          ScenePlace& place = block.places[At(i)];
          place = {.backward = backward,
                   .row = row,
                   .column = static_cast<int32_t>(k),
                   .columns = static_cast<int32_t>(count)};
          if (item.nodes.size() == 1) {
            place.node = item.nodes[0];
          } else {
            place.fold = static_cast<int32_t>(block.folds.size());
            block.folds.push_back(std::move(item.nodes));
          }
        }
      }
    }
    return row;
  }

  const SceneOptions& options_;
  Scene& scene_;
  Adjacency producers_, consumers_;
  std::vector<std::vector<int32_t>> children_;
  std::vector<int32_t> first_forward_, last_backward_;  // per cluster, places in union order
  std::vector<int32_t> item_of_;                        // per node, while its block is placed
  std::vector<bool> visible_;
};

}  // namespace

void LayOut(const SceneOptions& options, Scene& scene) {
  Layout(options, scene).Run();
}

}  // namespace strata::internal

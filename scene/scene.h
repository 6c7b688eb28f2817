#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "diff/model/graph_diff.h"

/// What to draw of a graph or of the difference of two graphs, without saying how: clusters, rows,
/// lanes, edges, statuses. The report's page and a desktop viewer draw the same scene.
namespace strata {

/// An index into Scene::nodes.
using SceneNodeId = Id<struct SceneNodeTag>;
/// An index into Scene::edges.
using SceneEdgeId = Id<struct SceneEdgeTag>;
/// An index into Scene::clusters.
using ClusterId = Id<struct ClusterTag>;

/// The one status that a node is drawn with.
enum class SceneStatus : uint8_t { kSame, kAdded, kRemoved, kChanged, kDerived, kMoved };

/// A node of the union of both graphs.
struct SceneNode {
  EntityId before, after;  ///< none: the side lacks it
  SceneStatus status = SceneStatus::kSame;
  PairId pair = {};  ///< none: one side lacks it
  ClusterId cluster = {};
  bool backward = false;  ///< right lane, which runs up
  /// Edges to the nearest difference, at most kFar: what is far may be folded.
  uint8_t distance = kFar;
  static constexpr uint8_t kFar = 4;
};

/// A value that flows from one node to another, once however often it is read.
struct SceneEdge {
  SceneNodeId from, to;
  SceneStatus status = SceneStatus::kSame;  ///< kSame, kAdded or kRemoved
};

struct SceneCounts {
  int32_t nodes = 0;  ///< of the union
  int32_t added = 0, removed = 0, changed = 0, derived = 0, moved = 0;

  int32_t differences() const { return added + removed + changed + derived + moved; }
  SceneCounts& operator+=(const SceneCounts& other);
  friend bool operator==(const SceneCounts&, const SceneCounts&) = default;
};

/// A node, or a run of unchanged nodes, at its place in a block.
struct ScenePlace {
  SceneNodeId node;       ///< none: a fold
  int32_t fold = -1;      ///< index into SceneBlock::folds
  bool backward = false;  ///< lane
  int32_t row = 0;        ///< in the block, from the top
  int32_t x = 0;          ///< its middle, in half columns from the lane's middle
};

/// A horizontal part of an open slab: slabs of child clusters, or nodes in rows.
struct SceneBlock {
  std::vector<ClusterId> clusters;  ///< child clusters, in order; empty: `places` are drawn
  std::vector<ScenePlace> places;   ///< by lane and row
  int32_t rows = 0;
};

/// A value that passes over rows of an open slab (a residual), drawn beside them. Ends are places
/// in the sequence of its blocks, where a block of child clusters counts one for each.
struct SceneSkip {
  int32_t from = 0, to = 0;
  bool backward = false;
  SceneStatus status = SceneStatus::kSame;
  friend bool operator==(const SceneSkip&, const SceneSkip&) = default;
};

/// A module, drawn as a slab; or a group of equal neighbours (`layers.{8..31}`).
struct SceneCluster {
  std::string path;     ///< "layers.3.attention"; of a group its pattern; "" for the root
  std::string label;    ///< last part of the path
  ClusterId parent;     ///< none: the root
  int32_t repeats = 0;  ///< a group: how many equal clusters it holds
  bool joins_previous =
      false;           ///< no data flows between it and its previous sibling: they may share a row
  SceneCounts counts;  ///< with everything below
  int32_t subtree_begin = 0, subtree_end = 0;  ///< nodes below, as a range of Scene::by_cluster
  std::vector<SceneBlock> blocks;
  std::vector<SceneSkip> skips;  ///< a few at most
};

struct Scene {
  IdVector<SceneNodeId, SceneNode>
      nodes;  ///< in union order: after order, removed nodes after their predecessor
  IdVector<SceneEdgeId, SceneEdge> edges;      ///< by consumer
  IdVector<ClusterId, SceneCluster> clusters;  ///< the root first, parents before children
  std::vector<SceneNodeId> by_cluster;         ///< nodes, cluster by cluster, each in union order
  bool has_backward = false;                   ///< two lanes

  static constexpr ClusterId kRoot{0};

  /// Nodes of a cluster with everything below, as `by_cluster` has them.
  std::span<const SceneNodeId> NodesBelow(const SceneCluster& cluster) const {
    return std::span(by_cluster)
        .subspan(static_cast<size_t>(cluster.subtree_begin),
                 static_cast<size_t>(cluster.subtree_end - cluster.subtree_begin));
  }
};

/// Of each node the edges that end at it. Linear.
IdVector<SceneNodeId, IdRange<SceneEdgeId>> EdgesTo(const Scene& scene);

class LaneLayouts;

struct SceneOptions {
  int32_t columns = 2;      ///< nodes side by side in a lane; twice as many when there is one lane
  int32_t min_repeats = 3;  ///< equal neighbours that become a group
  int32_t max_nodes = 400;  ///< of one slab by itself; more are cut into parts of half as many
  /// Chooses places inside slabs and remembers them from scene to scene, so that equal layers cost
  /// one layout. Null: rows by longest paths alone.
  LaneLayouts* lanes = nullptr;
};

/// The scene of a difference. Linear in nodes and edges but for sorting; same input, same scene.
///
/// Strata layout: the modules of a program are slabs, nested as their paths are, in forward order.
/// Inside an open slab forward nodes run down in the left lane and backward nodes run up in the
/// right one, so that both halves of a module stand at the same height. Inputs have a slab of their
/// own; so have pipeline stages and the chunks of a module, where a pass cut the graph. Who draws
/// may leave out rows of nodes that are far from every difference: places of the others keep their
/// columns. Programs without module paths get slabs for what repeats (`layers.0`, `layers.1`, …).
Scene MakeScene(const GraphDiff& diff, const SceneOptions& options = {});

std::string_view ToString(SceneStatus status);

}  // namespace strata

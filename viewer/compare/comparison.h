#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "diff/model/diff_options.h"
#include "diff/model/graph_diff.h"
#include "diff/policy/pins.h"
#include "scene/cost_diff.h"
#include "scene/geometry.h"
#include "scene/lane_layouts.h"
#include "scene/scene.h"
#include "viewer/compare/document.h"
#include "viewer/compare/workers.h"

namespace strata::viewer {

/// Lanes are laid out once for equal shapes of all scenes of a document.
struct SharedLanes {
  std::mutex mutex;
  LaneLayouts layouts;
};

/// A difference of two graphs with its scene, and what panes ask of its nodes. Does not change, so
/// any thread may read it.
class Comparison {
 public:
  struct Input {
    std::string title;
    std::shared_ptr<const Module> before, after;
    GraphId before_graph = {0}, after_graph = {0};
    DiffOptions options;
    std::shared_ptr<const Measures> measures = {};  ///< of the run, by stable id; null: none
    std::string file = {};                          ///< that pins are kept beside; "": nowhere
    std::optional<Pins> pins = {};                  ///< `options` hold them, too
    std::vector<std::string> warnings = {};         ///< about pins
    /// What both graphs cost; absent: what follows from shapes.
    std::function<Result<CostComparison>(const GraphDiff&)> costs = {};
  };
  /// Compares, and lays the scene out with `lanes`. Null when `outdated`. Errors: as Diff.
  static Result<std::shared_ptr<const Comparison>> Make(Input input, SharedLanes& lanes,
                                                        const Outdated& outdated);

  /// Differs from that of every other comparison of this process.
  uint64_t id() const { return id_; }
  const std::string& title() const { return title_; }
  /// Where its graphs come from, and what is pinned.
  const Input& input() const { return input_; }
  const GraphDiff& diff() const { return diff_; }
  const Scene& scene() const { return scene_; }
  int32_t size() const { return static_cast<int32_t>(scene_.nodes.size()); }
  IdRange<SceneNodeId> nodes() const { return IdsOf(scene_.nodes); }
  const SceneNode& node(SceneNodeId i) const { return scene_.nodes[i]; }
  const SceneCluster& cluster(ClusterId i) const { return scene_.clusters[i]; }
  const SceneCounts& counts() const { return cluster(Scene::kRoot).counts; }
  /// A line is drawn as added or removed, perhaps between nodes that are neither.
  bool has_added_edges() const { return has_added_edges_; }
  bool has_removed_edges() const { return has_removed_edges_; }
  const std::vector<ClusterId>& ChildrenOf(ClusterId cluster) const { return children_[cluster]; }

  SceneStatus StatusOf(SceneNodeId i) const { return node(i).status; }
  /// As shown: without characters that are not seen.
  const std::string& NameOf(SceneNodeId i) const { return names_[i]; }
  std::string NameBefore(SceneNodeId i) const;  ///< "" when only the other side has the node
  std::string OperatorOf(SceneNodeId i) const;  ///< "aten.mm.default", "input", "output"
  /// "mm"; "view → reshape" when the operator changed.
  std::string LabelOf(SceneNodeId i) const;
  /// `before`: the type before the pass, of a node that has one.
  std::string TypeOf(SceneNodeId i, bool before = false) const;
  /// Of its value, from the shape; 0: not known.
  double BytesOf(SceneNodeId i) const;
  /// What its runs took and gave; null: it was not measured.
  const NodeStatistics* MeasuredOf(SceneNodeId i) const;
  /// What both graphs cost. Made when it is asked for first, which takes a while: ask on a worker.
  const CostComparison& costs() const;
  /// How the cost of a node changed; `what` and `where` are empty.
  CostChange CostChangeOf(SceneNodeId i) const;
  bool has_measures() const { return input_.measures != nullptr && !input_.measures->empty(); }
  std::string ModuleOf(SceneNodeId i) const;
  Phase PhaseOf(SceneNodeId i) const { return ir_node(i).phase; }
  const Node& ir_node(SceneNodeId i) const;
  /// The graph that has the node: the one after, where both have it.
  const Graph& graph_of(SceneNodeId i) const;
  const Listing& listing_of(SceneNodeId i) const;
  EntityId entity_of(SceneNodeId i) const;
  /// "model.py:12"; "" when it is not known.
  std::string PlaceOf(SceneNodeId i) const;
  std::string CodeOf(SceneNodeId i) const;
  /// The pair of a node; null when only one side has it.
  const Pair* PairOf(SceneNodeId i) const;

  struct Neighbour {
    SceneNodeId node;
    SceneStatus status = SceneStatus::kSame;  ///< of the edge
  };
  std::vector<Neighbour> InputsOf(SceneNodeId i) const;
  std::vector<Neighbour> OutputsOf(SceneNodeId i) const;

  /// Nodes that differ, in scene order.
  const std::vector<SceneNodeId>& changes() const { return changes_; }
  /// The same with root causes before derived changes, as the table has them.
  const std::vector<SceneNodeId>& changes_by_cause() const { return changes_by_cause_; }
  /// Nodes of a hunk, in scene order.
  std::vector<SceneNodeId> NodesOf(const Hunk& hunk) const;
  SceneNodeId NodeOfBefore(EntityId id) const { return node_of_before_[id]; }
  SceneNodeId NodeOfAfter(EntityId id) const { return node_of_after_[id]; }

  /// The node of that name; one that exists after the pass, if there are two. None: no node has it.
  SceneNodeId Find(std::string_view name) const;
  /// The cluster of that path; none: no cluster has it.
  ClusterId FindCluster(std::string_view path) const;
  /// A tick per node of a cluster in program order (the backward half reversed, as it runs up):
  /// bits of statuses. At most 1024 ticks; of larger clusters each stands for several nodes.
  struct Barcode {
    std::vector<uint8_t> forward, backward;
  };
  const Barcode& BarcodeOf(ClusterId cluster) const { return barcodes_[cluster]; }
  /// Nodes of a cluster with everything below, in program order.
  std::vector<SceneNodeId> NodesIn(ClusterId cluster) const;

 private:
  Comparison(Input input, GraphDiff diff);
  void IndexNodes();
  void IndexEdges();
  void MakeBarcodes();

  const uint64_t id_;
  Input input_;
  std::string title_;
  GraphDiff diff_;
  Scene scene_;
  IdVector<SceneNodeId, std::string> names_;
  std::unordered_map<std::string_view, SceneNodeId> by_name_;   // keys are of names_
  std::unordered_map<std::string_view, ClusterId> by_cluster_;  // keys are of scene_
  IdVector<ClusterId, std::vector<ClusterId>> children_;
  IdVector<ClusterId, Barcode> barcodes_;
  std::vector<SceneNodeId> changes_, changes_by_cause_;
  IdVector<EntityId, SceneNodeId> node_of_before_, node_of_after_;
  IdVector<SceneNodeId, IdRange<SceneEdgeId>> inputs_;
  bool has_added_edges_ = false, has_removed_edges_ = false;
  mutable std::once_flag costs_made_;
  mutable CostComparison costs_;
  std::vector<int32_t> first_output_;  // by node, index into outputs_
  std::vector<SceneEdgeId> outputs_;   // by the node that they begin at
};

}  // namespace strata::viewer

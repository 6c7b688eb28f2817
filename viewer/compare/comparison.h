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

/// A difference of two graphs with its scene, and what panes ask of its nodes. Nodes are indices
/// into `scene().nodes`. Does not change, so any thread may read it.
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
  const SceneNode& node(int32_t i) const { return scene_.nodes[static_cast<size_t>(i)]; }
  const SceneCluster& cluster(int32_t i) const { return scene_.clusters[static_cast<size_t>(i)]; }
  const SceneCounts& counts() const { return scene_.clusters.front().counts; }
  /// A line is drawn as added or removed, perhaps between nodes that are neither.
  bool has_added_edges() const { return has_added_edges_; }
  bool has_removed_edges() const { return has_removed_edges_; }
  const std::vector<int32_t>& ChildrenOf(int32_t cluster) const {
    return children_[static_cast<size_t>(cluster)];
  }

  SceneStatus StatusOf(int32_t i) const { return node(i).status; }
  /// As shown: without characters that are not seen.
  const std::string& NameOf(int32_t i) const { return names_[static_cast<size_t>(i)]; }
  std::string NameBefore(int32_t i) const;  ///< "" when only the other side has the node
  std::string OperatorOf(int32_t i) const;  ///< "aten.mm.default", "input", "output"
  /// "mm"; "view → reshape" when the operator changed.
  std::string LabelOf(int32_t i) const;
  /// `before`: the type before the pass, of a node that has one.
  std::string TypeOf(int32_t i, bool before = false) const;
  /// Of its value, from the shape; 0: not known.
  double BytesOf(int32_t i) const;
  /// What its runs took and gave; null: it was not measured.
  const NodeStatistics* MeasuredOf(int32_t i) const;
  /// What both graphs cost. Made when it is asked for first, which takes a while: ask on a worker.
  const CostComparison& costs() const;
  /// How the cost of a node changed; `what` and `where` are empty.
  CostChange CostChangeOf(int32_t i) const;
  bool has_measures() const { return input_.measures != nullptr && !input_.measures->empty(); }
  std::string ModuleOf(int32_t i) const;
  Phase PhaseOf(int32_t i) const { return ir_node(i).phase; }
  const Node& ir_node(int32_t i) const;
  /// The graph that has the node: the one after, where both have it.
  const Graph& graph_of(int32_t i) const;
  const Listing& listing_of(int32_t i) const;
  EntityId entity_of(int32_t i) const;
  /// "model.py:12"; "" when it is not known.
  std::string PlaceOf(int32_t i) const;
  std::string CodeOf(int32_t i) const;
  /// The pair of a node; null when only one side has it.
  const Pair* PairOf(int32_t i) const;

  struct Neighbour {
    int32_t node = 0;
    SceneStatus status = SceneStatus::kSame;  ///< of the edge
  };
  std::vector<Neighbour> InputsOf(int32_t i) const;
  std::vector<Neighbour> OutputsOf(int32_t i) const;

  /// Nodes that differ, in scene order.
  const std::vector<int32_t>& changes() const { return changes_; }
  /// The same with root causes before derived changes, as the table has them.
  const std::vector<int32_t>& changes_by_cause() const { return changes_by_cause_; }
  /// Nodes of a hunk, in scene order.
  std::vector<int32_t> NodesOf(const Hunk& hunk) const;
  int32_t NodeOfBefore(EntityId id) const { return node_of_before_[id]; }
  int32_t NodeOfAfter(EntityId id) const { return node_of_after_[id]; }

  /// The node of that name; one that exists after the pass, if there are two. -1: none.
  int32_t Find(std::string_view name) const;
  /// The cluster of that path; -1: none.
  int32_t FindCluster(std::string_view path) const;
  /// A tick per node of a cluster in program order (the backward half reversed, as it runs up):
  /// bits of statuses. At most 1024 ticks; of larger clusters each stands for several nodes.
  struct Barcode {
    std::vector<uint8_t> forward, backward;
  };
  const Barcode& BarcodeOf(int32_t cluster) const {
    return barcodes_[static_cast<size_t>(cluster)];
  }
  /// Nodes of a cluster with everything below, in program order.
  std::vector<int32_t> NodesIn(int32_t cluster) const;

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
  std::vector<std::string> names_;
  std::unordered_map<std::string_view, int32_t> by_name_;     // keys are of names_
  std::unordered_map<std::string_view, int32_t> by_cluster_;  // keys are of scene_
  std::vector<std::vector<int32_t>> children_;
  std::vector<Barcode> barcodes_;  // by cluster
  std::vector<int32_t> changes_, changes_by_cause_;
  IdVector<EntityId, int32_t> node_of_before_, node_of_after_;
  std::vector<int32_t> first_input_;  // by node, index into Scene::edges
  bool has_added_edges_ = false, has_removed_edges_ = false;
  mutable std::once_flag costs_made_;
  mutable CostComparison costs_;
  std::vector<int32_t> first_output_, output_edge_;  // by node; indices into Scene::edges
};

}  // namespace strata::viewer

#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scene/geometry.h"
#include "viewer/compare/comparison.h"
#include "viewer/compare/workers.h"
#include "viewer/model/camera.h"

namespace strata::viewer {

/// The graph of one comparison as it is looked at: what is open, folded, hidden, selected, and
/// where the camera is. Layout runs on a worker; until it arrives the geometry before it stays.
/// Use from the thread that polls the workers.
class GraphModel {
 public:
  /// REQUIRES: `workers` outlives this.
  GraphModel(std::shared_ptr<const Comparison> comparison, Workers& workers);
  ~GraphModel();
  GraphModel(const GraphModel&) = delete;
  GraphModel& operator=(const GraphModel&) = delete;

  /// What stays when the next pass of the same graph is shown: open slabs by path, and what was in
  /// the middle of the stage.
  struct Kept {
    std::vector<std::string> open;
    double scale = 1;
    std::string node, path;  ///< nearest to the middle; "": none
    ScenePoint node_at, path_at;
  };
  Kept Keep() const;

  /// Moves the camera so that what was in the middle of another graph is where it was there.
  void PlaceLike(const Kept& kept);

  /// A view that was laid out before it is shown: FirstView of `open`, without a selection.
  struct LaidOut {
    std::vector<std::string> open;
    SceneView view;
    std::shared_ptr<const SceneGeometry> geometry;
  };
  /// What Begin shows without a selection: the slabs of `open` that the graph has, else those
  /// around the first difference.
  static SceneView FirstView(const Comparison& comparison, const std::vector<std::string>& open,
                             int32_t hops);

  /// Lays out for the first time, unless `ahead` is what has to be shown. Without `kept`: with the
  /// slabs around the first difference open, and the selection or first difference in the middle.
  void Begin(const std::optional<Kept>& kept, SceneNodeId selected, int32_t hops,
             const std::optional<LaidOut>& ahead = {});

  const Comparison& comparison() const { return *comparison_; }
  const std::shared_ptr<const Comparison>& shared_comparison() const { return comparison_; }
  /// Null: not laid out yet.
  const SceneGeometry* geometry() const { return geometry_.get(); }
  const std::shared_ptr<const SceneGeometry>& shared_geometry() const { return geometry_; }
  bool laying_out() const;
  /// How often it was laid out: another number, another view.
  uint64_t layouts() const { return layouts_; }
  const SceneView& view() const { return view_; }

  // --- Camera ---

  Camera camera;
  const Stage& stage() const { return stage_; }
  /// The first call with room places the camera.
  void SetStage(const Stage& stage);
  /// The next SetStage places the camera anew: the stage has another shape.
  void PlaceAgain();
  void Pan(double dx, double dy);
  void Zoom(double factor);
  void FitAll();
  /// Fits the selection or the highlighted nodes; without both, everything.
  void FitSelection();
  /// Brings the middle of the node, or of the closed slab that holds it, to the middle.
  void Center(SceneNodeId node);
  /// Fits the width, readable, with the selection or the first difference in the middle.
  void Home();

  // --- Selection ---

  SceneNodeId selected() const { return selected_; }
  SceneNodeId last_selected() const { return last_; }  ///< the one before
  void Select(SceneNodeId node);                       ///< none: nothing
  /// Selects a node, opens the slabs around it and moves it into sight.
  void Reveal(SceneNodeId node);
  /// Opens a slab with those around it, and moves its head into sight.
  void RevealCluster(ClusterId cluster);
  /// The node nearest to the selection in a direction, if there is one.
  SceneNodeId Nearest(int dx, int dy) const;

  // --- Open, fold, hide; each of these can be undone ---

  void Toggle(ClusterId cluster, bool below = false);
  void OpenAll(bool open);
  void Unfold(const SceneBox& box);
  void SetHops(int32_t hops);
  /// The slab that keys act on: the one opened or closed last, or the one around the selection.
  ClusterId cursor() const;
  void ToggleHere(bool below);
  /// Inward: opens the current slab or goes to its first content. Outward: closes it or the slab
  /// around it. Returns what to say.
  std::string Step(bool inward);
  std::string Hide();
  std::string ShowAll();
  /// Shows the selection and its neighbours alone; each further call adds a step.
  std::string Isolate();
  std::string Undo();
  std::string Redo();
  std::vector<std::string> OpenPaths() const;

  // --- Highlight ---

  /// If set, all other nodes are dimmed.
  const std::optional<std::set<SceneNodeId>>& lit() const { return lit_; }
  /// Highlights what flows into (or out of) the selection; each further call adds a step.
  std::string Light(bool upstream);
  /// Highlights a shortest way between the last two selected nodes.
  std::string Path();
  /// Ends highlighting or isolation; false without either.
  bool Clear();

 private:
  using Anchor = std::function<const SceneRect*(const SceneGeometry&)>;
  /// Lays out again, as a step that can be undone. What `anchor` returns keeps its place.
  void Relayout(const Anchor& anchor);
  void Layout(Anchor anchor);
  void Arrive(std::shared_ptr<const SceneGeometry> geometry, const Anchor& anchor);
  void Fit(double left, double top, double right, double bottom);
  Anchor AtSelection() const;
  void PlaceKept();
  /// False: the graph has neither the node nor the slab.
  bool PlaceAt(const Kept& kept);
  void CenterCluster(ClusterId cluster);
  std::string Swap(std::vector<SceneView>& from, std::vector<SceneView>& to);
  std::set<SceneNodeId> Grow(const std::set<SceneNodeId>& set, bool inputs, bool outputs) const;

  std::shared_ptr<const Comparison> comparison_;
  Workers& workers_;
  const std::string slot_;  // of the workers
  std::shared_ptr<const SceneGeometry> geometry_;
  SceneView view_;
  uint64_t layouts_ = 0;
  std::vector<SceneView> done_, undone_;
  Stage stage_;
  bool placed_ = false;  // the camera
  std::optional<Kept> kept_;
  SceneNodeId selected_, last_;
  ClusterId cursor_;
  SceneNodeId reveal_;        // to be centred when the layout arrives
  ClusterId reveal_cluster_;  // the same
  SceneNodeId isolated_;
  int32_t reach_ = 0;
  std::optional<std::set<SceneNodeId>> lit_;
  bool lit_upstream_ = false;
  SceneNodeId lit_from_;
  int32_t lit_steps_ = 0;
};

}  // namespace strata::viewer

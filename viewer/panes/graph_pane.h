#pragma once
#include <cstdint>
#include <string>

#include "viewer/panes/minimap.h"
#include "viewer/ui/elements.h"
#include "viewer/ui/scene_painter.h"

namespace strata::viewer {

/// The graph: toolbar, canvas with minimap, legend.
class GraphPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Toolbar(Ui& ui, const Area& area);
  float OverlayChoice(Ui& ui, const Area& area) const;
  void Canvas(Ui& ui, const Area& area);
  void OneCanvas(Ui& ui, const Area& whole);
  void SideBySide(Ui& ui, const Area& area);
  void Canvases(Ui& ui, const Area& area);
  static void Caption(Ui& ui, const Area& bar, std::string_view title, std::string_view more);
  SceneLook LookOf(Ui& ui, const GraphModel& graph) const;
  void Empty(Ui& ui, const Area& area) const;
  void Legend(Ui& ui, const Area& area) const;
  static float OverlayLegend(Ui& ui, const Area& area, const Overlay& overlay);
  static float StatusLegend(Ui& ui, const Area& area, float x, bool with_same);
  static float ControlLegend(Ui& ui, const Area& area, float x);
  /// What is under the pointer: a box, or the head of a slab.
  struct Hit {
    const SceneBox* box = nullptr;
    const SceneSlab* slab = nullptr;
  };
  Hit HitAt(const GraphModel& graph, double x, double y) const;
  void Pointer(Ui& ui, GraphModel& graph, const Area& stage);
  std::string TipOf(const Comparison& comparison, const Hit& hit) const;

  Minimap minimap_;
  double moved_ = 0;                         // pixels since the button went down
  SceneNodeId hover_node_;                   // of hover_graph_
  ClusterId hover_slab_;                     // of hover_graph_
  const GraphModel* hover_graph_ = nullptr;  // that the pointer is over in this frame
  const GraphModel* hover_shown_ = nullptr;  // the same in the last one
  Camera right_camera_;                      // of the graph after, beside the one before
};

}  // namespace strata::viewer

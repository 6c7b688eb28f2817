#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scene/geometry.h"
#include "viewer/compare/comparison.h"
#include "viewer/compare/overlay.h"
#include "viewer/model/camera.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Which graph is drawn. On one side, nodes of the other one are ghosts at their places.
enum class Side : uint8_t { kUnion, kBefore, kAfter };

/// How a scene is drawn, beside what it is.
struct SceneLook {
  Side side = Side::kUnion;
  SceneNodeId selected;
  ClusterId cursor;        ///< the slab that keys act on
  SceneNodeId hover_node;  ///< under the pointer
  ClusterId hover_slab;
  const std::set<SceneNodeId>* hits = nullptr;  ///< of a search
  const std::set<SceneNodeId>* lit = nullptr;   ///< all other nodes are dimmed
  const Overlay* overlay = nullptr;             ///< fills nodes instead of their status
  const std::set<SceneNodeId>* breakpoints =
      nullptr;              ///< a training under control stops after them
  SceneNodeId stopped;      ///< the node at which it stopped
  std::string_view labels;  ///< on lines: "", "shape", "dtype", "bytes"
};

/// From this zoom on nodes show two lines, inputs from elsewhere and arrow heads; below the next,
/// no labels; below the last, boxes alone.
inline constexpr double kTwoLinesZoom = 0.78, kLabelsZoom = 0.40, kLinesZoom = 0.20;

/// Draws a scene on a stage of the window: slabs, flows, lines, stubs, nodes. What is out of sight
/// costs nothing, and what is smaller than a pixel is drawn once. Adds nodes and slabs to the UI
/// tree.
class ScenePainter {
 public:
  ScenePainter(Ui& ui, const Comparison& comparison, const SceneGeometry& geometry,
               const Camera& camera, const Area& stage, const SceneLook& look);
  void Paint();

 private:
  float X(double x) const { return stage_.x + static_cast<float>(camera_.ToStageX(x)) * dpi_; }
  float Y(double y) const { return stage_.y + static_cast<float>(camera_.ToStageY(y)) * dpi_; }
  float S(double length) const { return static_cast<float>(length) * zoom_; }
  ImVec2 P(double x, double y) const { return {X(x), Y(y)}; }
  Area Of(const SceneRect& rect) const;
  bool Shows(const SceneRect& rect) const { return rect.Meets(visible_); }
  Font FontOf(Face face, double size) const;
  const Theme& theme() const { return *ui_.theme; }
  Color Dim(Color color, bool is_lit) const;

  void Slab(const SceneSlab& slab);
  void SlabBody(const SceneSlab& slab);
  /// Returns the room between the words and the counts.
  std::pair<float, float> SlabHead(const SceneSlab& slab, float middle);
  int32_t RepeatsOf(const SceneSlab& slab) const;
  std::string NameOf(const SceneSlab& slab) const;
  void SlabBarcode(const SceneSlab& slab, const Area& area);
  void Flow(const SceneFlow& flow);
  void Rail(const SceneRail& rail);
  void Groups(const std::vector<const SceneGroup*>& groups);
  void SmallGroup(const SceneGroup& group);

  void Line(const SceneLine& line);
  void Stub(const SceneBox& box);
  void Box(const SceneBox& box);
  void Mark(const SceneBox& box);
  void Fold(const SceneBox& box, const Area& area, bool is_lit);
  void Halo(const SceneBox& box, const Area& area);
  /// A training under control stops after the node, or has stopped there.
  void Control(const SceneBox& box, const Area& area);
  void Ghost(const SceneBox& box, const Area& area);
  /// What flows out of a node, where its lines begin.
  void ValueLabel(const SceneBox& box);
  /// The colours of the overlay; none: the node is plain.
  std::optional<Heat> HeatOfNode(SceneNodeId node) const;
  void Node(const SceneBox& box, const Area& area, bool is_lit);
  void NodeBody(const SceneBox& box, const Area& area, bool is_lit);
  void NodeWords(const SceneBox& box, const Area& area, bool is_lit);
  Area Clip(const Area& area) const;
  void RegisterBox(const SceneBox& box, const Area& whole);

  bool IsGone(SceneStatus status) const;
  bool IsLit(const SceneBox& box) const;
  Color LineColor(SceneStatus status, bool near) const;

  void Polyline(const std::vector<ScenePoint>& points, Color color, float width, bool dashed,
                double radius);
  void DashedRect(const Area& area, Color color, float width, float dash, float gap);
  void DashedLine(ImVec2 from, ImVec2 to, Color color, float width, float dash, float gap);
  void Hatch(const Area& area, Color color);
  void Head(double x, double y, bool up, Color color);
  void Triangle(float x, float y, bool down);

  Ui& ui_;
  const Comparison& comparison_;
  const SceneGeometry& geometry_;
  const Camera& camera_;
  const Area stage_;
  const SceneLook& look_;
  const float dpi_, zoom_;  // zoom_: pixels of the screen per pixel of the scene
  const bool two_, labels_, lines_;
  SceneRect visible_;  // of the scene
};

/// One tick per node in program order, as bits of statuses: added stands above the middle line,
/// removed below, changed across; unchanged are short and pale.
void DrawBarcode(Ui& ui, const Area& area, const std::vector<uint8_t>& ticks);

/// The badge of a status: strokes, not glyphs, so that a small `~` never reads as a minus.
void DrawSign(Ui& ui, float x, float y, float scale, SceneStatus status, Color derived_ink);

}  // namespace strata::viewer

#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The whole scene beside the canvas, with what the canvas shows of it. A press moves the canvas.
class Minimap {
 public:
  /// Before scaling.
  static constexpr float kWidth = 96;
  /// As high as the scene needs at that width, at most 160.
  static float HeightFor(const Ui& ui, const GraphModel& graph);

  void Draw(Ui& ui, GraphModel& graph, const Area& area, const Touch& touch);

 private:
  /// In pixels from the corner of the scene.
  struct Mark {
    float x = 0, y = 0, width = 0, height = 0;
    Color color = 0;
  };
  /// Makes the marks of a scene, `k` pixels a unit. Equal ones on one row of pixels are one.
  void Make(const GraphModel& graph, double k, const Theme& theme);
  void MarkSlabs(const GraphModel& graph, double k, const Theme& theme);
  void MarkBoxes(const GraphModel& graph, double k, const Theme& theme);
  void Add(const SceneRect& rect, double k, Color color, float least_height);

  std::vector<Mark> marks_;  ///< of these, until they change
  std::weak_ptr<const SceneGeometry> geometry_;
  const Theme* theme_ = nullptr;
  double k_ = 0;
};

}  // namespace strata::viewer

#pragma once
#include <algorithm>

#include "scene/geometry.h"

namespace strata::viewer {

/// Where a scene stands on a stage: a point of the scene is at `x + point * scale`. Units are
/// pixels before the scaling for high-resolution screens.
struct Camera {
  static constexpr double kLeast = 0.005, kMost = 3;

  double x = 0, y = 0, scale = 1;

  double ToStageX(double scene_x) const { return x + scene_x * scale; }
  double ToStageY(double scene_y) const { return y + scene_y * scale; }
  double ToSceneX(double stage_x) const { return (stage_x - x) / scale; }
  double ToSceneY(double stage_y) const { return (stage_y - y) / scale; }

  /// Zooms about a point of the stage, which keeps its place.
  void Zoom(double factor, double stage_x, double stage_y) {
    const double next = std::clamp(scale * factor, kLeast, kMost);
    x = stage_x - (stage_x - x) * next / scale;
    y = stage_y - (stage_y - y) * next / scale;
    scale = next;
  }

  friend bool operator==(const Camera&, const Camera&) = default;
};

/// The room in which a scene is shown. `room` is the width that the minimap leaves.
struct Stage {
  double width = 0, height = 0, room = 0;
};

}  // namespace strata::viewer

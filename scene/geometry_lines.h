#pragma once
#include "scene/geometry.h"

namespace strata {

/// Fills `lines`, `groups[…].lines`, and of each box `stubs`, `feeds` and `first_port`. Lines are
/// orthogonal: straight where no box is in the way, else beside the boxes, and between the lanes
/// through the gutter. An input from another block, or from too far away, is a stub.
///
/// REQUIRES: all boxes have positions.
void RouteLines(const Scene& scene, SceneGeometry& geometry);

}  // namespace strata

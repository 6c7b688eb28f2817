#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/id.h"
#include "scene/scene.h"

/// The positions of slabs, boxes and lines of a scene with some slabs open, in pixels at zoom 1.
/// MakeScene computes rows and columns; here they become pixels, and rows far from every difference
/// are folded. The report's page computes the same in assets/report/layout.js.
namespace strata {

/// Measures of the design language, in pixels at zoom 1.
struct SceneMeasures {
  static constexpr double kNodeWidth = 148, kNodeHeight = 38, kGapX = 14, kGapY = 34, kGutter = 44;
  static constexpr double kPad = 12, kHead = 28, kSlab = 46, kThinSlab = 30, kRowGap = 20;
  static constexpr double kFoldHeight = 24, kMargin = 22, kRail = 12;
  static constexpr double kPitch = kNodeHeight + kGapY, kHalf = (kNodeWidth + kGapX) / 2;
};

/// What of a scene is open, folded and hidden.
struct SceneView {
  static constexpr int32_t kAllHops = -1;

  std::set<ClusterId> open = {Scene::kRoot};  ///< the root is always one of them
  int32_t hops = 1;  ///< how far from a difference nodes are shown; kAllHops: all are
  std::set<std::pair<ClusterId, int32_t>> unfolded = {};  ///< (cluster, block) that show all nodes
  std::set<SceneNodeId> hidden = {};                      ///< by the user
  std::optional<std::set<SceneNodeId>> only = {};         ///< if set, no other node is shown

  friend bool operator==(const SceneView&, const SceneView&) = default;
};

struct SceneRect {
  double x = 0, y = 0, width = 0, height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  bool Contains(double px, double py) const {
    return px >= x && px <= right() && py >= y && py <= bottom();
  }
  bool Meets(const SceneRect& other) const {
    return x < other.right() && right() > other.x && y < other.bottom() && bottom() > other.y;
  }
};

struct ScenePoint {
  double x = 0, y = 0;
};

/// A node, or a fold of several nodes.
struct SceneBox : SceneRect {
  SceneNodeId node;                  ///< none: a fold
  std::vector<SceneNodeId> members;  ///< of a node itself alone
  ClusterId cluster;
  int32_t block = 0;  ///< index into SceneCluster::blocks
  int32_t group = 0;  ///< index into SceneGeometry::groups
  bool backward = false;
  bool by_hand = false;  ///< a fold with nodes that the user hid
  bool feeds = false;    ///< a line begins here
  int32_t row = 0;
  double left = 0, right_side = 0, gutter = 0;  ///< of its lane; the middle between the lanes
  double first_port = 0;                        ///< x of the leftmost line that ends here
  /// Inputs from elsewhere, changed ones first.
  std::vector<std::pair<SceneNodeId, SceneStatus>> stubs;
};

/// A line between two boxes of one block.
struct SceneLine {
  int32_t from = 0, to = 0;  ///< indices into SceneGeometry::boxes
  SceneNodeId source;        ///< that it comes from: a member of box `from`
  SceneStatus status = SceneStatus::kSame;
  std::vector<ScenePoint> points;  ///< orthogonal; the arrow head follows the last one
};

/// A module.
struct SceneSlab : SceneRect {
  ClusterId cluster;
  std::vector<ClusterId> run;  ///< several equal neighbours drawn as one; else empty
  int32_t depth = 0;
  bool open = false, differs = false;
};

/// The boxes of a block; tested for visibility before its boxes are.
struct SceneGroup : SceneRect {
  int32_t boxes_begin = 0, boxes_end = 0;  ///< of SceneGeometry::boxes
  int32_t lines_begin = 0, lines_end = 0;  ///< of SceneGeometry::lines
};

/// The arrows between two rows of slabs.
struct SceneFlow : SceneRect {
  bool forward = false, backward = false;
};

/// A residual that passes beside rows: from (x, from) by the rail to (x, to).
struct SceneRail {
  double x = 0, rail = 0, from = 0, to = 0;
  SceneStatus status = SceneStatus::kSame;
};

struct SceneGeometry {
  double width = 0, height = 0;
  std::vector<SceneSlab> slabs;  ///< parents before children
  std::vector<SceneGroup> groups;
  std::vector<SceneBox> boxes;
  std::vector<SceneLine> lines;
  std::vector<SceneFlow> flows;
  std::vector<SceneRail> rails;
  IdVector<SceneNodeId, int32_t> box_of;  ///< index into `boxes`; -1: its slab is closed
  IdVector<ClusterId, int32_t> slab_of;   ///< index into `slabs`; -1: inside a closed one
  int32_t drawn = 0;                      ///< nodes with a box of their own

  const SceneBox* BoxOf(SceneNodeId node) const;
  const SceneSlab* SlabOf(ClusterId cluster) const;
  /// The outermost closed slab that holds `cluster`; null: all slabs around it are open.
  const SceneSlab* ClosedSlabOf(const Scene& scene, ClusterId cluster) const;
};

/// Linear in what is open, but for lines: each is tested against the boxes of its block.
SceneGeometry MakeGeometry(const Scene& scene, const SceneView& view);

}  // namespace strata

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

using BoxId = Id<struct BoxTag>;
using LineId = Id<struct LineTag>;
using SlabId = Id<struct SlabTag>;

struct ScenePoint {
  double x = 0, y = 0;
};

/// A node, or a fold of several nodes.
struct SceneBox : SceneRect {
  SceneNodeId node;                  ///< none: a fold
  std::vector<SceneNodeId> members;  ///< of a node itself alone
  ClusterId cluster;
  int32_t block = 0;  ///< index into SceneCluster::blocks
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
  BoxId from, to;
  SceneNodeId source;  ///< that it comes from: a member of box `from`
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
  IdRange<BoxId> boxes{0};
  IdRange<LineId> lines{0};
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
  IdVector<SlabId, SceneSlab> slabs;  ///< parents before children
  std::vector<SceneGroup> groups;
  IdVector<BoxId, SceneBox> boxes;
  IdVector<LineId, SceneLine> lines;
  std::vector<SceneFlow> flows;
  std::vector<SceneRail> rails;
  IdVector<SceneNodeId, BoxId> box_of;  ///< none: its slab is closed
  IdVector<ClusterId, SlabId> slab_of;  ///< none: inside a closed one
  int32_t drawn = 0;                    ///< nodes with a box of their own

  const SceneBox* BoxOf(SceneNodeId node) const;
  const SceneSlab* SlabOf(ClusterId cluster) const;
  /// The outermost closed slab that holds `cluster`; null: all slabs around it are open.
  const SceneSlab* ClosedSlabOf(const Scene& scene, ClusterId cluster) const;
};

/// Linear in what is open, but for lines: each is tested against the boxes of its block.
SceneGeometry MakeGeometry(const Scene& scene, const SceneView& view);

}  // namespace strata

#include "scene/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "scene/fold_block.h"
#include "scene/geometry_lines.h"
#include "scene/index.h"

namespace strata {
namespace {

using M = SceneMeasures;

constexpr double kMinWidth = 480;
constexpr size_t kMinRun = 3;      // closed equal neighbours that are drawn as one slab
constexpr size_t kMaxRow = 3;      // independent closed slabs side by side
constexpr int32_t kMostRails = 3;  // per side of a slab

class Maker {
 public:
  Maker(const Scene& scene, const SceneView& view)
      : scene_(scene), view_(view), folder_(scene, view), lanes_(scene.clusters.size()) {
    made_.box_of.resize(scene.nodes.size());
    made_.slab_of.resize(scene.clusters.size());
  }

  SceneGeometry Run() {
    Measure();
    made_.height = Place(Scene::kRoot, {.x = 0, .y = 0, .width = made_.width}, 0);
    RouteLines(scene_, made_);
    for (const SceneBox& box : made_.boxes)
      made_.drawn += box.node.valid() ? 1 : 0;
    return std::move(made_);
  }

 private:
  const SceneCluster& cluster(ClusterId id) const { return scene_.clusters[id]; }
  bool IsOpen(ClusterId id) const { return id == Scene::kRoot || view_.open.contains(id); }
  bool Differs(ClusterId id) const { return cluster(id).counts.differences() > 0; }
  double PadOf(ClusterId id) const {
    return id == Scene::kRoot ? 0 : M::kPad + (cluster(id).skips.empty() ? 0 : M::kRail);
  }

  /// Folds every open block. Lanes are as wide as the widest row needs, the same in all slabs, so
  /// that they are aligned.
  void Measure() {
    double pads = 0, reach = 0;
    const auto measure = [&](ClusterId id) {
      double sum = 0;
      for (ClusterId c = id; c.valid(); c = cluster(c).parent)
        sum += PadOf(c);
      pads = std::max(pads, sum);
      const std::vector<SceneBlock>& blocks = cluster(id).blocks;
      for (size_t b = 0; b < blocks.size(); ++b) {
        if (!blocks[b].clusters.empty()) continue;
        FoldedBlock& folded = folded_[{id, static_cast<int32_t>(b)}];
        folded = folder_.Fold(blocks[b], id, static_cast<int32_t>(b));
        for (const SceneBox& box : folded.boxes)
          reach = std::max(reach, std::abs(box.x));
      }
    };
    measure(Scene::kRoot);
    for (ClusterId id : view_.open) {
      if (id > Scene::kRoot && id < scene_.clusters.end_id()) measure(id);
    }
    lane_ = M::kNodeWidth + 2 * reach * M::kHalf + 2 * M::kMargin;
    made_.width =
        std::max(kMinWidth, scene_.has_backward ? 2 * lane_ + M::kGutter : lane_) + 2 * pads;
  }

  /// Places a slab at the upper left corner of `room`; returns its height with all that belongs to
  /// it.
  double Place(ClusterId id, SceneRect room, int32_t depth) {
    const SlabId at = made_.slabs.Add({});
    SceneSlab& slab = made_.slabs[at];
    static_cast<SceneRect&>(slab) = room;
    slab.cluster = id;
    slab.depth = depth;
    slab.open = IsOpen(id);
    slab.differs = Differs(id);
    made_.slab_of[id] = at;
    const SceneCluster& c = cluster(id);
    if (!slab.open) {
      slab.height = slab.differs || c.repeats > 0 ? M::kSlab : M::kThinSlab;
      return slab.height + (c.repeats > 0 ? 10 : 0);
    }
    const double pad = PadOf(id);
    const SceneRect inner = {.x = room.x + pad,
                             .y = room.y + (id == Scene::kRoot ? 0 : M::kHead + 4),
                             .width = room.width - 2 * pad};
    std::vector<SceneRect> sequence;  // of blocks and child slabs, for the rails
    const double end = PlaceBlocks(id, inner, depth, sequence);
    PlaceRails(c, made_.slabs[at], sequence);
    made_.slabs[at].height = end - room.y + (id == Scene::kRoot ? 0 : M::kPad);
    return made_.slabs[at].height;
  }

  using Lanes = std::array<bool, 2>;

  /// Returns where the blocks end.
  double PlaceBlocks(ClusterId id, SceneRect inner, int32_t depth,
                     std::vector<SceneRect>& sequence) {
    double at = inner.y;
    std::optional<Lanes> previous;
    const auto gap = [&](Lanes lanes) {
      if (previous) {
        SceneFlow flow;
        static_cast<SceneRect&>(flow) = {inner.x, at, inner.width, M::kRowGap};
        flow.forward = (*previous)[0] && lanes[0];
        flow.backward = (*previous)[1] && lanes[1];
        made_.flows.push_back(flow);
        at += M::kRowGap;
      }
      previous = lanes;
    };
    const SceneCluster& c = cluster(id);
    for (size_t b = 0; b < c.blocks.size(); ++b) {
      const SceneBlock& block = c.blocks[b];
      if (block.clusters.empty()) {
        Lanes lanes = {false, false};
        for (const ScenePlace& place : block.places)
          lanes[place.backward ? 1 : 0] = true;
        gap(lanes);
        const double height =
            PlaceNodes(id, static_cast<int32_t>(b), {inner.x, at + 14, inner.width, 0}) + 28;
        sequence.push_back({.x = 0, .y = at, .width = 0, .height = height});
        at += height;
        continue;
      }
      for (const Row& row : c.repeats > 0 ? RunsOf(block.clusters) : RowsOf(block.clusters)) {
        gap(LanesOf(row.clusters));
        const double tallest = PlaceRow(row, {inner.x, at, inner.width, 0}, depth + 1);
        for (ClusterId child : row.clusters) {
          const double height = made_.slabs[made_.slab_of[child]].height;
          sequence.push_back({.x = 0, .y = at, .width = 0, .height = height});
        }
        at += tallest;
      }
    }
    return at;
  }

  struct Row {
    std::vector<ClusterId> clusters;
    bool is_run = false;  // drawn as one slab
  };

  /// Closed equal neighbours are one slab, so that an open one among them stays in sight.
  std::vector<Row> RunsOf(const std::vector<ClusterId>& clusters) const {
    std::vector<Row> runs;
    for (ClusterId child : clusters) {
      if (!runs.empty() && !IsOpen(child) && !IsOpen(runs.back().clusters[0])) {
        runs.back().clusters.push_back(child);
      } else {
        runs.push_back({.clusters = {child}});
      }
    }
    std::vector<Row> rows;
    for (Row& run : runs) {
      if (run.clusters.size() >= kMinRun) {
        run.is_run = true;
        rows.push_back(std::move(run));
      } else {
        for (ClusterId child : run.clusters)
          rows.push_back({.clusters = {child}});
      }
    }
    return rows;
  }

  /// Closed independent neighbours share a row; an open slab has a row of its own.
  std::vector<Row> RowsOf(const std::vector<ClusterId>& clusters) const {
    const auto tall = [&](ClusterId c) { return Differs(c) || cluster(c).repeats > 0; };
    std::vector<Row> rows;
    for (ClusterId child : clusters) {
      const bool joins =
          !rows.empty() && rows.back().clusters.size() < kMaxRow && cluster(child).joins_previous &&
          !IsOpen(child) &&
          std::ranges::all_of(
              rows.back().clusters,
              [&](ClusterId other) { return !IsOpen(other) && tall(other) == tall(child); });
      if (joins) {
        rows.back().clusters.push_back(child);
      } else {
        rows.push_back({.clusters = {child}});
      }
    }
    return rows;
  }

  double PlaceRow(const Row& row, SceneRect room, int32_t depth) {
    if (row.is_run) {
      const SlabId at = made_.slabs.Add({});
      SceneSlab& slab = made_.slabs[at];
      static_cast<SceneRect&>(slab) = room;
      slab.height = M::kSlab;
      slab.cluster = row.clusters[0];
      slab.run = row.clusters;
      slab.depth = depth;
      slab.differs = Differs(row.clusters[0]);
      for (ClusterId child : row.clusters)
        made_.slab_of[child] = at;
      return M::kSlab + 10;
    }
    const auto count = static_cast<double>(row.clusters.size());
    const double each = (room.width - (count - 1) * M::kGapX) / count;
    double tallest = 0;
    for (size_t i = 0; i < row.clusters.size(); ++i) {
      const double x = room.x + static_cast<double>(i) * (each + M::kGapX);
      tallest = std::max(tallest, Place(row.clusters[i], {x, room.y, each, 0}, depth));
    }
    return tallest;
  }

  Lanes LanesOf(const std::vector<ClusterId>& clusters) {
    if (!scene_.has_backward) return {true, false};
    Lanes lanes = {false, false};
    for (ClusterId id : clusters) {
      std::optional<Lanes>& known = lanes_[id];
      if (!known) {
        known = Lanes{false, false};
        for (SceneNodeId node : scene_.NodesBelow(cluster(id)))
          (*known)[scene_.nodes[node].backward ? 1 : 0] = true;
      }
      lanes[0] |= (*known)[0];
      lanes[1] |= (*known)[1];
    }
    return lanes;
  }

  /// Returns the height of the rows.
  double PlaceNodes(ClusterId id, int32_t number, SceneRect room) {
    FoldedBlock folded = std::move(folded_[{id, number}]);
    const double middle = room.x + room.width / 2;
    const double lane[2] = {scene_.has_backward ? middle - M::kGutter / 2 - lane_ / 2 : middle,
                            middle + M::kGutter / 2 + lane_ / 2};
    SceneGroup& group = made_.groups.emplace_back();
    static_cast<SceneRect&>(group) = {room.x, room.y - 14, room.width,
                                      folded.height * M::kPitch + 14};
    const BoxId first = made_.boxes.end_id();
    for (SceneBox& box : folded.boxes) {
      const double tall = box.node.valid() ? M::kNodeHeight : M::kFoldHeight;
      const double center = lane[box.backward ? 1 : 0];
      box.x = center + box.x * M::kHalf - M::kNodeWidth / 2;
      box.y = room.y + box.row * M::kPitch + (M::kNodeHeight - tall) / 2;
      box.width = M::kNodeWidth;
      box.height = tall;
      box.left = center - lane_ / 2;
      box.right_side = center + lane_ / 2;
      box.gutter = middle;
      box.first_port = std::numeric_limits<double>::infinity();
      for (SceneNodeId member : box.members)
        made_.box_of[member] = made_.boxes.end_id();
      made_.boxes.Add(std::move(box));
    }
    group.boxes = {first, made_.boxes.end_id()};
    return std::max(0.0, folded.height * M::kPitch - M::kGapY);
  }

  void PlaceRails(const SceneCluster& c, const SceneRect& slab,
                  const std::vector<SceneRect>& sequence) {
    int32_t used[2] = {0, 0};
    for (const SceneSkip& skip : c.skips) {
      if (At(skip.from) >= sequence.size() || At(skip.to) >= sequence.size()) continue;
      const SceneRect &a = sequence[At(skip.from)], &b = sequence[At(skip.to)];
      int32_t& tracks = used[skip.backward ? 1 : 0];
      if (a.y == b.y || tracks == kMostRails) continue;
      const double side = skip.backward ? 1 : -1;
      SceneRail rail;
      rail.x = skip.backward ? slab.right() - M::kPad - M::kRail : slab.x + M::kPad + M::kRail;
      rail.rail = rail.x + side * (7 + 6 * tracks++);
      rail.from = skip.backward ? a.y + 8 : a.bottom() - 8;
      rail.to = skip.backward ? b.bottom() - 8 : b.y + 10;
      rail.status = skip.status;
      made_.rails.push_back(rail);
    }
  }

  const Scene& scene_;
  const SceneView& view_;
  BlockFolder folder_;
  IdVector<ClusterId, std::optional<Lanes>> lanes_;
  double lane_ = 0;                                              // width
  std::map<std::pair<ClusterId, int32_t>, FoldedBlock> folded_;  // by block
  SceneGeometry made_;
};

}  // namespace

const SceneBox* SceneGeometry::BoxOf(SceneNodeId node) const {
  if (!node.valid() || node >= box_of.end_id() || !box_of[node].valid()) return nullptr;
  return &boxes[box_of[node]];
}

const SceneSlab* SceneGeometry::SlabOf(ClusterId cluster) const {
  if (!cluster.valid() || cluster >= slab_of.end_id() || !slab_of[cluster].valid()) return nullptr;
  return &slabs[slab_of[cluster]];
}

const SceneSlab* SceneGeometry::ClosedSlabOf(const Scene& scene, ClusterId cluster) const {
  const SceneSlab* found = nullptr;
  for (ClusterId c = cluster; c > Scene::kRoot; c = scene.clusters[c].parent) {
    const SceneSlab* slab = SlabOf(c);
    if (slab != nullptr && !slab->open) found = slab;
  }
  return found;
}

SceneGeometry MakeGeometry(const Scene& scene, const SceneView& view) {
  return Maker(scene, view).Run();
}

}  // namespace strata

#include "scene/geometry_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "base/id.h"
#include "scene/index.h"

namespace strata {
namespace {

using M = SceneMeasures;

constexpr int32_t kMaxSpan = 7;     // rows that a line may pass: a longer one cannot be followed
constexpr int32_t kSideTracks = 4;  // beside a lane
constexpr double kGutterTracks[] = {0, -7, 7, -14, 14};

/// Lines that run along one side of a block, on parallel tracks.
class Tracks {
 public:
  /// The first track on which nothing runs between these heights.
  int32_t Take(double top, double bottom) {
    size_t track = 0;
    for (; track < spans_.size(); ++track) {
      if (std::ranges::all_of(spans_[track],
                              [&](auto span) { return bottom < span.first || top > span.second; }))
        break;
    }
    if (track == spans_.size()) spans_.emplace_back();
    spans_[track].emplace_back(top, bottom);
    return static_cast<int32_t>(track);
  }

 private:
  std::vector<std::vector<std::pair<double, double>>> spans_;
};

/// The lines of one block.
class BlockRouter {
 public:
  BlockRouter(const Scene& scene, const IdVector<SceneNodeId, IdRange<SceneEdgeId>>& edges_to,
              SceneGeometry& geometry, SceneGroup& group)
      : scene_(scene), edges_to_(edges_to), geometry_(geometry), group_(group) {}

  void Run() {
    const LineId first = geometry_.lines.end_id();
    for (const BoxId b : group_.boxes)
      RouteTo(b);
    group_.lines = {first, geometry_.lines.end_id()};
  }

 private:
  struct Wanted {
    BoxId from;
    SceneNodeId source;
    SceneStatus status = SceneStatus::kSame;
    bool cross = false;
  };

  SceneBox& box(BoxId id) { return geometry_.boxes[id]; }

  /// The inputs of a box as lines; those that cannot be lines become stubs.
  std::vector<Wanted> LinesTo(BoxId to) {
    SceneBox& b = box(to);
    std::vector<Wanted> wanted;
    std::set<BoxId> seen;
    for (SceneNodeId member : b.members) {
      for (SceneEdgeId e : edges_to_[member]) {
        const SceneEdge& edge = scene_.edges[e];
        const BoxId from = geometry_.box_of[edge.from];
        if (from == to) continue;
        const bool elsewhere = !group_.boxes.Contains(from);
        if (elsewhere || (b.node.valid() && std::abs(box(from).row - b.row) > kMaxSpan)) {
          if (b.node.valid()) b.stubs.emplace_back(edge.from, edge.status);
          continue;
        }
        // Several values between two boxes are one line, unless their statuses differ.
        if (seen.contains(from) && edge.status == SceneStatus::kSame) continue;
        seen.insert(from);
        wanted.push_back({from, edge.from, edge.status, box(from).backward != b.backward});
      }
    }
    std::ranges::stable_sort(wanted, [&](const Wanted& p, const Wanted& q) {
      return p.cross != q.cross ? p.cross : box(p.from).x < box(q.from).x;
    });
    return wanted;
  }

  void RouteTo(BoxId to) {
    const std::vector<Wanted> wanted = LinesTo(to);
    SceneBox& b = box(to);
    const auto count = static_cast<double>(wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) {
      const Wanted& w = wanted[k];
      const double port =
          b.x + b.width / 2 +
          (static_cast<double>(k) - (count - 1) / 2) * std::min(24.0, (b.width - 40) / count);
      std::optional<std::vector<ScenePoint>> points =
          w.cross ? Across(box(w.from), b, port) : Along(box(w.from), b, port);
      if (points) {
        geometry_.lines.Add({w.from, to, w.source, w.status, std::move(*points)});
        box(w.from).feeds = true;
        b.first_port = std::min(b.first_port, port);
      } else if (b.node.valid()) {
        b.stubs.emplace_back(w.source, w.status);
      }
    }
    std::ranges::stable_sort(b.stubs, [](const auto& p, const auto& q) {
      return p.second != SceneStatus::kSame && q.second == SceneStatus::kSame;
    });
  }

  /// From lane to lane, through the gutter. None: no track is free.
  std::optional<std::vector<ScenePoint>> Across(const SceneBox& a, const SceneBox& b, double port) {
    const double down = b.backward ? -1 : 1, end = b.backward ? b.bottom() : b.y;
    const double last = end - down * 5, turn = end - down * 17;
    const int32_t track = tracks_[2].Take(std::min(a.y, b.y), std::max(a.y, b.y));
    if (At(track) >= std::size(kGutterTracks)) return std::nullopt;
    const double x = a.gutter + kGutterTracks[track], middle = a.y + a.height / 2;
    const bool right = x > a.x;
    if (!BlockedSideways(a, x)) {
      return {
          {{right ? a.right() : a.x, middle}, {x, middle}, {x, turn}, {port, turn}, {port, last}}};
    }
    const double out = a.backward ? a.y : a.bottom(), step = out + (a.backward ? -1 : 1) * 12;
    const double leave = a.x + a.width / 2 + 24;
    return {{{leave, out}, {leave, step}, {x, step}, {x, turn}, {port, turn}, {port, last}}};
  }

  bool BlockedSideways(const SceneBox& a, double x) {
    for (const BoxId id : group_.boxes) {
      const SceneBox& o = box(id);
      if (&o == &a || o.y >= a.bottom() || o.bottom() <= a.y) continue;
      if (x > a.x ? o.x > a.x && o.x < x : o.x < a.x && o.right() > x) return true;
    }
    return false;
  }

  /// Inside of a lane: straight down, with one bend, or beside the boxes. None: no track is free.
  std::optional<std::vector<ScenePoint>> Along(const SceneBox& a, const SceneBox& b, double port) {
    const double down = b.backward ? -1 : 1, end = b.backward ? b.bottom() : b.y;
    const double last = end - down * 5, start = a.backward ? a.y : a.bottom();
    const double x = a.x + a.width / 2, near = start + down * 9, far = end - down * 20;
    if ((end - start) * down > 0) {
      if (std::abs(x - port) < 1 && IsFree(x, start, end, a, b))
        return {{{x, start}, {port, last}}};
      if (IsFree(port, near, end, a, b))
        return {{{x, start}, {x, near}, {port, near}, {port, last}}};
      if (IsFree(x, start, far, a, b)) return {{{x, start}, {x, far}, {port, far}, {port, last}}};
    }
    const int32_t track =
        tracks_[a.backward ? 1 : 0].Take(std::min(start, end), std::max(start, end));
    if (track >= kSideTracks) return std::nullopt;
    const double offset = 4 + track * 4.5;
    const double side =
        a.backward ? a.right_side - M::kMargin + offset : a.left + M::kMargin - offset;
    return {{{x, start}, {x, near}, {side, near}, {side, far}, {port, far}, {port, last}}};
  }

  /// No other box is on the way along `x`.
  bool IsFree(double x, double from, double to, const SceneBox& a, const SceneBox& b) {
    const double top = std::min(from, to), bottom = std::max(from, to);
    for (const BoxId id : group_.boxes) {
      const SceneBox& o = box(id);
      if (&o != &a && &o != &b && x > o.x - 4 && x < o.right() + 4 && bottom > o.y - 2 &&
          top < o.bottom() + 2)
        return false;
    }
    return true;
  }

  const Scene& scene_;
  const IdVector<SceneNodeId, IdRange<SceneEdgeId>>& edges_to_;
  SceneGeometry& geometry_;
  SceneGroup& group_;
  std::array<Tracks, 3> tracks_;  // left of the forward lane, right of the backward one, gutter
};

}  // namespace

void RouteLines(const Scene& scene, SceneGeometry& geometry) {
  const IdVector<SceneNodeId, IdRange<SceneEdgeId>> edges_to = EdgesTo(scene);
  for (SceneGroup& group : geometry.groups)
    BlockRouter(scene, edges_to, geometry, group).Run();
}

}  // namespace strata

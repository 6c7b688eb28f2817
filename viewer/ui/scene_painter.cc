#include "viewer/ui/scene_painter.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

using M = SceneMeasures;

}  // namespace

ScenePainter::ScenePainter(Ui& ui, const Comparison& comparison, const SceneGeometry& geometry,
                           const Camera& camera, const Area& stage, const SceneLook& look)
    : ui_(ui),
      comparison_(comparison),
      geometry_(geometry),
      camera_(camera),
      stage_(stage),
      look_(look),
      dpi_(ui.fonts.scale()),
      zoom_(static_cast<float>(camera.scale) * dpi_),
      two_(camera.scale >= kTwoLinesZoom),
      labels_(camera.scale >= kLabelsZoom),
      lines_(camera.scale >= kLinesZoom) {
  constexpr double kMargin = 24;  // stubs and halos stand out of their boxes
  visible_ = {.x = camera.ToSceneX(0) - kMargin,
              .y = camera.ToSceneY(0) - kMargin,
              .width = static_cast<double>(stage.width / dpi_) / camera.scale + 2 * kMargin,
              .height = static_cast<double>(stage.height / dpi_) / camera.scale + 2 * kMargin};
}

void ScenePainter::Paint() {
  ui_.draw().PushClipRect(stage_.min(), stage_.max(), true);
  std::vector<const SceneSlab*> slabs;
  for (const SceneSlab& slab : geometry_.slabs) {
    if (slab.cluster != Scene::kRoot && Shows(slab)) slabs.push_back(&slab);
  }
  std::vector<const SceneGroup*> groups;
  for (const SceneGroup& group : geometry_.groups) {
    if (Shows(group)) groups.push_back(&group);
  }
  for (const SceneSlab* slab : slabs) {
    if (slab->open) Slab(*slab);
  }
  if (lines_) {
    for (const SceneFlow& flow : geometry_.flows) {
      if (Shows(flow)) Flow(flow);
    }
    for (const SceneRail& rail : geometry_.rails) {
      if (Shows({rail.rail - 20, std::min(rail.from, rail.to), 40, std::abs(rail.from - rail.to)}))
        Rail(rail);
    }
    for (const SceneGroup* group : groups) {
      for (const LineId line : group->lines)
        Line(geometry_.lines[line]);
    }
  }
  for (const SceneSlab* slab : slabs) {
    if (!slab->open) Slab(*slab);
  }
  Groups(groups);
  ui_.draw().PopClipRect();
}

void ScenePainter::Groups(const std::vector<const SceneGroup*>& groups) {
  const bool tiny = S(M::kPitch) < 2;
  for (const SceneGroup* group : groups) {
    if (tiny) {
      SmallGroup(*group);
      continue;
    }
    for (const BoxId id : group->boxes) {
      const SceneBox& box = geometry_.boxes[id];
      if (!Shows(box)) continue;
      if (lines_) {
        Box(box);
        if (two_ && !box.stubs.empty()) Stub(box);
        if (two_ && box.feeds && !look_.labels.empty() && box.node.valid()) ValueLabel(box);
      } else {
        Mark(box);
      }
    }
  }
}

/// A block of rows that are thinner than two pixels: one rectangle per lane, and its differences.
void ScenePainter::SmallGroup(const SceneGroup& group) {
  Area lanes[2];
  bool used[2] = {false, false};
  for (const BoxId id : group.boxes) {
    const SceneBox& box = geometry_.boxes[id];
    const size_t lane = box.backward ? 1 : 0;
    if (!used[lane])
      lanes[lane] = {X(box.left), Y(group.y), S(box.right_side - box.left), S(group.height)};
    used[lane] = true;
  }
  for (size_t lane = 0; lane < 2; ++lane) {
    if (used[lane]) ui_.Fill(lanes[lane], theme().tick);
  }
  float drawn[2] = {-1e9F, -1e9F};  // lowest pixel that is marked, by lane
  for (const BoxId id : group.boxes) {
    const SceneBox& box = geometry_.boxes[id];
    if (!box.node.valid() || comparison_.StatusOf(box.node) == SceneStatus::kSame) continue;
    float& last = drawn[box.backward ? 1 : 0];
    if (std::abs(Y(box.y) - last) < 1) continue;
    last = Y(box.y);
    Mark(box);
  }
}

Area ScenePainter::Of(const SceneRect& rect) const {
  const float x = std::round(X(rect.x)), y = std::round(Y(rect.y));
  return {x, y, std::max(1.0F, std::round(X(rect.right())) - x),
          std::max(1.0F, std::round(Y(rect.bottom())) - y)};
}

/// Text is never smaller than 9 pixels on the screen; further out it keeps the size of a label.
Font ScenePainter::FontOf(Face face, double size) const {
  const double on_screen =
      two_ ? std::max(size * camera_.scale, 9.0) : std::max(9.0, std::min(11.0, size));
  return ui_.font(face, static_cast<float>(on_screen));
}

Color ScenePainter::Dim(Color color, bool is_lit) const {
  if (is_lit) return color;
  const auto alpha = static_cast<Color>(static_cast<float>(color >> 24) * 0.25F);
  return (color & 0xFFFFFF) | (alpha << 24);
}

// --- Slabs ---

void ScenePainter::Slab(const SceneSlab& slab) {
  SlabBody(slab);
  if (!lines_) return;
  const bool tall = slab.height > M::kThinSlab && !slab.open;
  const double middle = slab.y + (slab.open ? M::kHead / 2 + 2 : tall ? 15 : M::kThinSlab / 2);
  const auto [text_end, badges_begin] = SlabHead(slab, Y(middle));
  if (slab.open) return;
  // Below its name; where names are larger than the rest, beside it.
  const bool below = tall && S(12) >= ui_.px(7);
  const float left =
      below ? X(slab.x + 12) : std::max(X(slab.x + slab.width * 0.42), text_end + 16);
  const float right = below ? X(slab.right() - 12) : badges_begin - ui_.px(8);
  if (right - left < ui_.px(60)) return;
  const double top = below ? 27 : 9, height = below ? 14 : slab.height - 18;
  SlabBarcode(slab, {left, Y(slab.y + top), right - left, S(height)});
}

int32_t ScenePainter::RepeatsOf(const SceneSlab& slab) const {
  return slab.run.empty() ? comparison_.cluster(slab.cluster).repeats
                          : static_cast<int32_t>(slab.run.size());
}

std::string ScenePainter::NameOf(const SceneSlab& slab) const {
  const std::string& label = comparison_.cluster(slab.cluster).label;
  const int32_t repeats = RepeatsOf(slab);
  const std::string name =
      slab.run.empty()
          ? label
          : fmt::format("{{{}..{}}}", label, comparison_.cluster(slab.run.back()).label);
  return Visible(repeats > 0 ? fmt::format("{} ×{} equal", name, repeats) : name);
}

void ScenePainter::SlabBody(const SceneSlab& slab) {
  const Area area = Of(slab);
  const bool marked = look_.hover_slab == slab.cluster || look_.cursor == slab.cluster;
  const Color line = marked ? theme().ink_2 : theme().rule;
  const Color fill = slab.open ? (slab.depth % 2 == 1 ? theme().well : theme().well_2)
                     : slab.differs || comparison_.changes().empty() ? theme().surface
                                                                     : theme().fold;
  const float radius = 6 * static_cast<float>(std::min(1.0, camera_.scale));
  // Behind the slab the edges of equal ones.
  for (int i = slab.open || RepeatsOf(slab) == 0 ? 0 : 2; i >= 0; --i) {
    const float step = S(5) * static_cast<float>(i);
    const Area card = {area.x + step, area.y + step, area.width - 2 * step, area.height};
    ui_.Fill(card, i > 0 ? theme().surface : fill, radius);
    ui_.Frame(card, line, radius);
  }
  if (!ui_.tree.recording()) return;
  Area head = area;
  if (slab.open) head.height = std::min(area.height, S(M::kHead));
  head = Clip(head);
  if (head.width < 1 || head.height < 1) return;
  ui_.Register("slab:" + Visible(comparison_.cluster(slab.cluster).path), "slab", NameOf(slab),
               head, slab.open);
}

std::pair<float, float> ScenePainter::SlabHead(const SceneSlab& slab, float middle) {
  SceneCounts counts = comparison_.cluster(slab.cluster).counts;
  const auto times = static_cast<int32_t>(slab.run.empty() ? 1 : slab.run.size());
  for (int32_t* count : {&counts.nodes, &counts.added, &counts.removed, &counts.changed,
                         &counts.derived, &counts.moved})
    *count *= times;
  Triangle(X(slab.x + 13), middle, slab.open);
  const float size = std::max(9.0F, two_ ? 11 * static_cast<float>(camera_.scale) : 11.0F);
  const Font name = FontOf(slab.differs ? Face::kBold : Face::kSans, 12);
  // Words keep their size when the slab shrinks, and so does the triangle.
  const float left = std::max(X(slab.x + 22), X(slab.x + 13) + ui_.px(8));
  // The name comes first: counts that leave it no room are left to the barcode.
  float badges = X(slab.right() - 10);
  const float least = std::min(name.WidthOf(NameOf(slab)), ui_.px(64));
  if (ui_.CountsWidth(counts, size) + ui_.px(8) + least <= badges - left)
    badges = ui_.Counts(counts, badges, middle, size);
  const Color ink = slab.differs || slab.open ? theme().ink : theme().ink_2;
  const float end = left + ui_.Text(left, middle - name.size / 2, NameOf(slab), name, ink,
                                    std::max(1.0F, badges - left - ui_.px(8)));
  const Font quiet = FontOf(Face::kSans, 11);
  std::string nodes = Plural(counts.nodes, "node");
  if (look_.overlay != nullptr && slab.run.empty()) {
    const std::string total = look_.overlay->TextOfCluster(slab.cluster);
    if (!total.empty()) nodes += "  " + total;
  }
  const float width = quiet.WidthOf(nodes), begin = end + ui_.px(8);
  if (begin + width < badges - ui_.px(8)) {
    ui_.Text(begin, middle - quiet.size / 2, nodes, quiet, theme().ink_3);
    return {begin + width, badges};
  }
  return {end, badges};
}

void ScenePainter::SlabBarcode(const SceneSlab& slab, const Area& area) {
  const SceneCluster& cluster = comparison_.cluster(slab.cluster);
  const ClusterId one = !slab.run.empty() || cluster.repeats == 0
                            ? slab.cluster
                            : comparison_.ChildrenOf(slab.cluster).front();
  const Comparison::Barcode& code = comparison_.BarcodeOf(one);
  if (!comparison_.scene().has_backward) {
    DrawBarcode(ui_, area, code.forward);
    return;
  }
  const float gap = ui_.px(16), half = (area.width - gap) / 2;
  DrawBarcode(ui_, {area.x, area.y, half, area.height}, code.forward);
  DrawBarcode(ui_, {area.x + half + gap, area.y, half, area.height}, code.backward);
  ui_.Fill({std::round(area.x + half + gap / 2), area.y, ui_.px(1), area.height}, theme().rule_2);
}

void ScenePainter::Flow(const SceneFlow& flow) {
  const auto arrow = [&](double at, bool up) {
    const double from = up ? flow.bottom() - 3 : flow.y + 3,
                 to = up ? flow.y + 3 : flow.bottom() - 3;
    ui_.draw().AddLine(P(at, from), P(at, to + (up ? 6 : -6)), theme().edge,
                       std::max(1.0F, S(1.5)));
    Head(at, to, up, theme().edge);
  };
  if (!comparison_.scene().has_backward) {
    arrow(flow.x + flow.width / 2, false);
    return;
  }
  if (flow.forward) arrow(flow.x + flow.width / 4, false);
  if (flow.backward) arrow(flow.x + flow.width * 3 / 4, true);
}

void ScenePainter::Rail(const SceneRail& rail) {
  if (IsGone(rail.status)) return;
  const double inward = rail.rail < rail.x ? 1 : -1;
  const Color color = LineColor(rail.status, false);
  Polyline({{rail.x, rail.from},
            {rail.rail, rail.from},
            {rail.rail, rail.to},
            {rail.x - inward * 3, rail.to}},
           color, std::max(1.0F, S(rail.status == SceneStatus::kAdded ? 2 : 1)),
           rail.status == SceneStatus::kRemoved, 4);
  ui_.draw().AddTriangleFilled(P(rail.x, rail.to), P(rail.x - inward * 5, rail.to - 3),
                               P(rail.x - inward * 5, rail.to + 3), color);
}

// --- Lines ---

bool ScenePainter::IsGone(SceneStatus status) const {
  return (look_.side == Side::kBefore && status == SceneStatus::kAdded) ||
         (look_.side == Side::kAfter && status == SceneStatus::kRemoved);
}

bool ScenePainter::IsLit(const SceneBox& box) const {
  return look_.lit == nullptr || std::ranges::any_of(box.members, [&](SceneNodeId node) {
           return look_.lit->contains(node);
         });
}

Color ScenePainter::LineColor(SceneStatus status, bool near) const {
  if (status == SceneStatus::kAdded) return theme().added.line;
  if (status == SceneStatus::kRemoved) return theme().removed.line;
  return near ? theme().ink : theme().edge;
}

void ScenePainter::Line(const SceneLine& line) {
  if (IsGone(line.status)) return;
  const SceneBox& a = geometry_.boxes[line.from];
  const SceneBox& b = geometry_.boxes[line.to];
  const double left = std::min(a.x, b.x) - 40, top = std::min(a.y, b.y);
  if (!Shows({left, top, std::abs(a.x - b.x) + M::kNodeWidth + 80,
              std::abs(a.y - b.y) + M::kNodeHeight}))
    return;
  const bool near =
      look_.selected.valid() && (a.node == look_.selected || b.node == look_.selected);
  const bool removed = line.status == SceneStatus::kRemoved;
  const double width = line.status == SceneStatus::kAdded ? 2 : removed || near ? 1.5 : 1;
  const Color color = Dim(LineColor(line.status, near), IsLit(a) && IsLit(b));
  Polyline(line.points, color, std::max(1.0F, S(width)), removed && labels_, 5);
  const ScenePoint& last = line.points.back();
  Head(last.x, last.y + (b.backward ? -5 : 5), b.backward, color);
}

/// An input from elsewhere: a short arrow with the source's name; a changed one first.
void ScenePainter::Stub(const SceneBox& box) {
  std::vector<std::pair<SceneNodeId, SceneStatus>> stubs;
  for (const auto& stub : box.stubs) {
    if (!IsGone(stub.second)) stubs.push_back(stub);
  }
  if (stubs.empty() || IsGone(comparison_.StatusOf(box.node)) || !IsLit(box)) return;
  const auto [from, status] = stubs.front();
  const double x = box.x + 10, edge = box.backward ? box.bottom() : box.y;
  const double out = box.backward ? 1 : -1;
  const Color color = LineColor(status, false);
  ui_.draw().AddLine(P(x, edge + out * 13), P(x, edge + out * 6), color,
                     std::max(1.0F, S(status == SceneStatus::kAdded ? 2 : 1)));
  Head(x, edge, box.backward, color);
  const Font font = FontOf(Face::kMono, 10);
  const std::string more = stubs.size() > 1 ? fmt::format(" +{}", stubs.size() - 1) : "";
  const float begin = X(x + 6), end = X(std::min(box.first_port, box.right()) - 8);
  const float room = end - begin - font.WidthOf(more);
  const Color ink = status == SceneStatus::kAdded     ? theme().added.text
                    : status == SceneStatus::kRemoved ? theme().removed.text
                                                      : theme().ink_3;
  const float y = Y(edge + out * 9) - font.size / 2;
  if (room < font.size) return;
  const float used = ui_.Text(begin, y, comparison_.NameOf(from), font, ink, room);
  if (!more.empty()) ui_.Text(begin + used, y, more, font, ink);
}

}  // namespace strata::viewer

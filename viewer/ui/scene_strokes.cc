#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/ui/scene_painter.h"

namespace strata::viewer {

void ScenePainter::Polyline(const std::vector<ScenePoint>& points, Color color, float width,
                            bool dashed, double radius) {
  ImDrawList& draw = ui_.draw();
  if (dashed) {
    for (size_t i = 1; i < points.size(); ++i)
      DashedLine(P(points[i - 1].x, points[i - 1].y), P(points[i].x, points[i].y), color, width,
                 S(4), S(3));
    return;
  }
  const auto half = [](const ScenePoint& p, const ScenePoint& q) {
    return (std::abs(p.x - q.x) + std::abs(p.y - q.y)) / 2;
  };
  draw.PathClear();
  draw.PathLineTo(P(points.front().x, points.front().y));
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const ScenePoint &p = points[i - 1], &q = points[i], &r = points[i + 1];
    const double round = std::min({radius, half(p, q), half(q, r)});
    if (round < 0.5 || !labels_) {
      draw.PathLineTo(P(q.x, q.y));
      continue;
    }
    const auto toward = [&](const ScenePoint& other) {
      const double length = std::max(1e-9, std::hypot(other.x - q.x, other.y - q.y));
      return P(q.x + (other.x - q.x) / length * round, q.y + (other.y - q.y) / length * round);
    };
    draw.PathLineTo(toward(p));
    draw.PathBezierQuadraticCurveTo(P(q.x, q.y), toward(r), 4);
  }
  draw.PathLineTo(P(points.back().x, points.back().y));
  draw.PathStroke(color, 0, width);
}

void ScenePainter::DashedLine(ImVec2 from, ImVec2 to, Color color, float width, float dash,
                              float gap) {
  const float dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
  if (length < 0.5F) return;
  for (float at = 0; at < length; at += dash + gap) {
    const float end = std::min(at + dash, length);
    ui_.draw().AddLine({from.x + dx * at / length, from.y + dy * at / length},
                       {from.x + dx * end / length, from.y + dy * end / length}, color, width);
  }
}

void ScenePainter::DashedRect(const Area& area, Color color, float width, float dash, float gap) {
  const float h = width / 2;
  const ImVec2 a = {area.x + h, area.y + h}, b = {area.right() - h, area.y + h};
  const ImVec2 c = {area.right() - h, area.bottom() - h}, d = {area.x + h, area.bottom() - h};
  DashedLine(a, b, color, width, dash, gap);
  DashedLine(b, c, color, width, dash, gap);
  DashedLine(d, c, color, width, dash, gap);
  DashedLine(a, d, color, width, dash, gap);
}

/// Strokes at 45 degrees, ended at the box: clipping would cost a draw call each.
void ScenePainter::Hatch(const Area& area, Color color) {
  const float step = std::max(ui_.px(4), S(6)), w = area.width, h = area.height;
  for (float at = step; at < w + h; at += step) {
    ui_.draw().AddLine({area.x + std::max(0.0F, at - h), area.y + std::min(h, at)},
                       {area.x + std::min(w, at), area.y + std::max(0.0F, at - w)}, color,
                       ui_.px(1));
  }
}

void ScenePainter::Head(double x, double y, bool up, Color color) {
  const double back = up ? 7 : -7;
  ui_.draw().AddTriangleFilled(P(x, y), P(x - 3, y + back), P(x + 3, y + back), color);
}

void ScenePainter::Triangle(float x, float y, bool down) {
  const float u = ui_.px(static_cast<float>(std::min(1.0, std::max(0.7, camera_.scale))));
  if (down) {
    ui_.draw().AddTriangleFilled({x - 4 * u, y - 2.5F * u}, {x + 4 * u, y - 2.5F * u},
                                 {x, y + 3.5F * u}, theme().ink_2);
  } else {
    ui_.draw().AddTriangleFilled({x - 2.5F * u, y - 4 * u}, {x - 2.5F * u, y + 4 * u},
                                 {x + 3.5F * u, y}, theme().ink_2);
  }
}

void DrawSign(Ui& ui, float x, float y, float k, SceneStatus status, Color derived_ink) {
  const Theme& theme = *ui.theme;
  ImDrawList& draw = ui.draw();
  const bool derived = status == SceneStatus::kDerived;
  x = std::round(x);
  y = std::round(y);
  const Area box = {x, y, 13 * k, 13 * k};
  if (derived) {
    draw.AddRect(box.min(), box.max(), derived_ink, 2 * k);
  } else {
    draw.AddRectFilled(box.min(), box.max(), theme.TextOf(status), 2 * k);
  }
  const Color ink = derived ? derived_ink : theme.badge_ink;
  const float width = std::max(1.2F, 1.6F * k), mx = x + 6.5F * k, my = y + 6.5F * k;
  const auto at = [&](float dx, float dy) { return ImVec2{mx + dx * k, my + dy * k}; };
  switch (status) {
    case SceneStatus::kAdded:
      draw.AddLine(at(0, -3.5F), at(0, 3.5F), ink, width);
      draw.AddLine(at(-3.5F, 0), at(3.5F, 0), ink, width);
      break;
    case SceneStatus::kRemoved:
      draw.AddLine(at(-3.5F, 0), at(3.5F, 0), ink, width);
      break;
    case SceneStatus::kChanged:
    case SceneStatus::kDerived:
      draw.PathClear();
      draw.PathLineTo(at(-4, 1.4F));
      draw.PathBezierCubicCurveTo(at(-2.6F, -3.6F), at(-0.6F, -1.6F), at(0, 0), 6);
      draw.PathBezierCubicCurveTo(at(0.6F, 1.6F), at(2.6F, 3.6F), at(4, -1.4F), 6);
      draw.PathStroke(ink, 0, width);
      break;
    case SceneStatus::kMoved:
      draw.PathClear();
      draw.PathArcTo(at(0, 1), 3 * k, 3.14159F, 3.14159F * 1.85F, 8);
      draw.PathStroke(ink, 0, width);
      draw.AddTriangleFilled(at(4.5F, -1.5F), at(2.8F, 1.5F), at(0, -0.5F), ink);
      break;
    case SceneStatus::kSame:
      break;
  }
}

void DrawBarcode(Ui& ui, const Area& area, const std::vector<uint8_t>& ticks) {
  if (ticks.empty()) return;
  constexpr std::array kOrder = {SceneStatus::kSame,    SceneStatus::kDerived, SceneStatus::kMoved,
                                 SceneStatus::kChanged, SceneStatus::kRemoved, SceneStatus::kAdded};
  const Theme& theme = *ui.theme;
  ImDrawList& draw = ui.draw();
  const float step = std::min(ui.px(4), area.width / static_cast<float>(ticks.size()));
  const float thick = std::max(1.0F, step * 0.7F), h = area.height, middle = area.y + h / 2;
  const auto fill = [&](float x, float y, float width, float height, Color color) {
    draw.AddRectFilled({x, y}, {x + width, y + height}, color);
  };
  for (const SceneStatus wanted : kOrder) {
    const Theme::StatusColors* colors = theme.Of(wanted);
    const Color color = colors != nullptr                 ? colors->line
                        : wanted == SceneStatus::kDerived ? theme.tick_2
                                                          : theme.tick;
    float last = -1e9F;
    for (size_t i = 0; i < ticks.size(); ++i) {
      if ((ticks[i] >> static_cast<int>(wanted) & 1) == 0) continue;
      const float x = std::floor(area.x + static_cast<float>(i) * step);
      // Many ticks on one pixel are one tick.
      if (x - last < 1) continue;
      last = x;
      switch (wanted) {
        case SceneStatus::kSame:
          fill(x, middle - h * 0.16F, std::min(thick, ui.px(1.5F)), h * 0.32F, color);
          break;
        case SceneStatus::kAdded:
          fill(x, area.y, thick, h / 2, color);
          break;
        case SceneStatus::kRemoved:
          fill(x, middle, thick, h / 2, color);
          break;
        case SceneStatus::kChanged:
          fill(x, area.y, thick, h, color);
          break;
        case SceneStatus::kDerived:
          fill(x, middle - h * 0.25F, thick, h * 0.5F, color);
          break;
        case SceneStatus::kMoved:
          fill(x - 0.5F, area.y + 1, thick + 1, 2, color);
          fill(x - 0.5F, area.y + h - 3, thick + 1, 2, color);
          fill(x, area.y + 1, 1, h - 3, color);
          break;
      }
    }
  }
}

}  // namespace strata::viewer

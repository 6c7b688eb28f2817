#include "viewer/panes/minimap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace strata::viewer {
namespace {

constexpr float kInset = 6;

}  // namespace

float Minimap::HeightFor(const Ui& ui, const GraphModel& graph) {
  const SceneGeometry& geometry = *graph.geometry();
  const double height = (kWidth - 2 * kInset) * geometry.height / geometry.width + 2 * kInset;
  return ui.px(static_cast<float>(std::clamp(height, 24.0, 160.0)));
}

void Minimap::Draw(Ui& ui, GraphModel& graph, const Area& area, const Touch& touch) {
  const Theme& theme = *ui.theme;
  const SceneGeometry& geometry = *graph.geometry();
  ui.Fill(area, theme.surface, 4);
  ui.Frame(area, theme.rule, 4);
  const float inset = ui.px(kInset);
  const double k = std::min((area.width - 2 * inset) / geometry.width,
                            (area.height - 2 * inset) / std::max(1.0, geometry.height));
  const float left = area.x + (area.width - static_cast<float>(geometry.width * k)) / 2;
  const float top = area.y + inset;
  if (geometry_.lock() != graph.shared_geometry() || k_ != k || theme_ != &theme)
    Make(graph, k, theme);
  for (const Mark& mark : marks_)
    ui.Fill({left + mark.x, top + mark.y, mark.width, mark.height}, mark.color);
  const Camera& camera = graph.camera;
  const float x0 = left + static_cast<float>(camera.ToSceneX(0) * k);
  const float y0 = top + static_cast<float>(camera.ToSceneY(0) * k);
  const float x1 = left + static_cast<float>(camera.ToSceneX(graph.stage().width) * k);
  const float y1 = top + static_cast<float>(camera.ToSceneY(graph.stage().height) * k);
  ui.draw().AddRect({std::max(area.x + 1, x0), std::max(area.y + 1, y0)},
                    {std::min(area.right() - 1, x1), std::min(area.bottom() - 1, y1)}, theme.accent,
                    0, 0, ui.px(1.5F));
  if (!touch.held) return;
  const ImVec2 at = ImGui::GetIO().MousePos;
  graph.camera.x = graph.stage().room / 2 - (at.x - left) / k * camera.scale;
  graph.camera.y = graph.stage().height / 2 - (at.y - top) / k * camera.scale;
}

void Minimap::Make(const GraphModel& graph, double k, const Theme& theme) {
  marks_.clear();
  MarkSlabs(graph, k, theme);
  MarkBoxes(graph, k, theme);
  geometry_ = graph.shared_geometry();
  k_ = k;
  theme_ = &theme;
}

void Minimap::MarkSlabs(const GraphModel& graph, double k, const Theme& theme) {
  float last = -1e9F;
  for (const SceneSlab& slab : graph.geometry()->slabs) {
    if (slab.cluster == Scene::kRoot) continue;
    const auto y = static_cast<float>(slab.y * k);
    if (!slab.open && !slab.differs && std::abs(y - last) < 0.5F) continue;
    last = y;
    Add(slab, k, slab.open ? theme.well_2 : theme.tick, 1);
    if (slab.open || !slab.differs) continue;
    const SceneCounts& counts = graph.comparison().cluster(slab.cluster).counts;
    const std::pair<int32_t, Color> statuses[] = {{counts.changed, theme.changed.line},
                                                  {counts.removed, theme.removed.line},
                                                  {counts.added, theme.added.line},
                                                  {counts.moved, theme.moved.line}};
    double at = 0.45;
    for (const auto& [count, color] : statuses) {
      const SceneRect part = {slab.x + slab.width * at, slab.y, slab.width * 0.12, slab.height};
      if (count > 0) Add(part, k, color, 1.5F);
      at += 0.13;
    }
  }
}

void Minimap::MarkBoxes(const GraphModel& graph, double k, const Theme& theme) {
  /// Where the last mark of a status is, in forward and in backward.
  struct Last {
    SceneStatus status = SceneStatus::kSame;
    std::array<float, 2> y = {-1e9F, -1e9F};
  };
  std::vector<Last> lasts;
  const auto last_of = [&](SceneStatus status, bool backward) -> float& {
    auto found = std::ranges::find(lasts, status, &Last::status);
    if (found == lasts.end()) found = lasts.insert(lasts.end(), {.status = status});
    return found->y[backward ? 1 : 0];
  };
  for (const SceneBox& box : graph.geometry()->boxes) {
    const SceneStatus status =
        box.node.valid() ? graph.comparison().StatusOf(box.node) : SceneStatus::kSame;
    const auto y = static_cast<float>(box.y * k);
    float& last = last_of(status, box.backward);
    if (std::abs(y - last) < (status == SceneStatus::kSame ? 1.0F : 0.5F)) continue;
    last = y;
    const Theme::StatusColors* const colors = theme.Of(status);
    Add(box, k, colors != nullptr ? colors->line : theme.tick_2, 1.5F);
  }
}

void Minimap::Add(const SceneRect& rect, double k, Color color, float least_height) {
  marks_.push_back({.x = static_cast<float>(rect.x * k),
                    .y = static_cast<float>(rect.y * k),
                    .width = std::max(1.0F, static_cast<float>(rect.width * k)),
                    .height = std::max(least_height, static_cast<float>(rect.height * k)),
                    .color = color});
}

}  // namespace strata::viewer

#include "viewer/panes/graph_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

using M = SceneMeasures;

constexpr float kToolbar = 44, kLegend = 28, kMinimap = 96, kMinimapInset = 6;

/// As high as the scene needs at the width of the minimap, at most 160.
float MinimapHeight(const Ui& ui, const GraphModel& graph) {
  const SceneGeometry& geometry = *graph.geometry();
  const double height =
      (kMinimap - 2 * kMinimapInset) * geometry.height / geometry.width + 2 * kMinimapInset;
  return ui.px(static_cast<float>(std::clamp(height, 24.0, 160.0)));
}

}  // namespace

void GraphPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "graph");
  const float toolbar = ui.px(kToolbar), legend = ui.px(kLegend);
  Toolbar(ui, {area.x, area.y, area.width, toolbar});
  Legend(ui, {area.x, area.bottom() - legend, area.width, legend});
  const Area canvas = {area.x, area.y + toolbar, area.width, area.height - toolbar - legend};
  UiPanel panel(ui, "canvas", canvas, ui.theme->bg, false);
  if (ui.model.graph() != nullptr && ui.model.graph()->geometry() != nullptr) {
    Canvas(ui, canvas);
  } else {
    if (GraphModel* graph = ui.model.graph()) {
      const double dpi = ui.fonts.scale();
      graph->SetStage({canvas.width / dpi, canvas.height / dpi, canvas.width / dpi - 120});
    }
    Empty(ui, canvas);
  }
}

void GraphPane::Toolbar(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.bg);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const float y = area.y + ui.px(8), height = ui.px(28);
  float x = area.x + ui.px(12);
  const bool differs = !graph->comparison().changes().empty();
  if (differs) {
    const std::pair<Mode, const char*> modes[] = {
        {Mode::kUnified, "Unified"}, {Mode::kSideBySide, "Side by side"}, {Mode::kBlink, "Blink"}};
    for (const auto& [mode, label] : modes) {
      const float width = ui.font(Face::kBold, 12).WidthOf(label) + ui.px(20);
      if (ui.Button(std::string("mode:") + label, label, {x, y, width, height},
                    ui.model.mode() == mode))
        ui.model.SetMode(mode);
      x += width - ui.px(1);
    }
    x += ui.px(12);
    const bool only = ui.model.hops() != SceneView::kAllHops;
    const float label = ui.font(Face::kSans, 12).WidthOf("Changed only +") + ui.px(24);
    if (ui.Checkbox("changed-only", "Changed only +", {x, y, label, height}, only))
      ui.model.SetHops(only ? SceneView::kAllHops : 1);
    x += label + ui.px(4);
    int hops = only ? ui.model.hops() : 1;
    if (ui.Choice("hops", {x, y, ui.px(80), height}, {"0 hops", "1 hop", "2 hops", "3 hops"}, hops))
      ui.model.SetHops(hops);
    x += ui.px(88);
  }
  float right = area.right() - ui.px(12);
  const auto button = [&](const char* name, const std::string& label, float width) {
    right -= width;
    return ui.Button(name, label, {right, y, width, height});
  };
  if (button("fit", "Fit", ui.px(44))) graph->FitAll();
  right -= ui.px(8);
  if (button("zoom-in", "+", ui.px(28))) graph->Zoom(1.25);
  right += ui.px(1);
  if (button("zoom", fmt::format("{:.0f}%", graph->camera.scale * 100), ui.px(52)))
    graph->Zoom(1 / graph->camera.scale);
  right += ui.px(1);
  if (button("zoom-out", "−", ui.px(28))) graph->Zoom(0.8);
  right -= ui.px(12);
  if (graph->geometry() == nullptr) return;
  const std::string drawn =
      fmt::format("{} of {} nodes drawn", NumberText(graph->geometry()->drawn),
                  NumberText(graph->comparison().size()));
  if (ui.font(Face::kSans, 12).WidthOf(drawn) > right - x) return;
  const Area words = {x, y, right - x, height};
  ui.TextRight(words, drawn, ui.font(Face::kSans, 12), theme.ink_3);
  ui.Register("drawn", "text", drawn, words);
}

void GraphPane::Empty(Ui& ui, const Area& area) const {
  const Theme& theme = *ui.theme;
  const Subject* subject = ui.model.subject();
  std::string title, words;
  if (!ui.model.error().empty()) {
    title = "This cannot be shown";
    words = ui.model.error();
  } else if (subject != nullptr && subject->failed) {
    title = fmt::format("{} failed", subject->Title());
    words =
        subject->error + (subject->reproduce.empty() ? "" : "\nReproduce: " + subject->reproduce);
  } else if (ui.model.comparing() || ui.model.opening()) {
    title = "Loading";
    words = subject != nullptr && subject->counts.nodes > 0
                ? fmt::format("Laying out {}", Plural(subject->counts.nodes, "node"))
                : std::string("Reading the file");
  } else if (ui.model.busy()) {
    return;  // words that appear for one frame disturb
  } else {
    title = "Nothing to show";
    words = "Choose a pass on the left.";
  }
  const float x = area.x + ui.px(24);
  ui.Text(x, area.y + ui.px(24), title, ui.font(Face::kBold, 15), theme.ink);
  ImGui::SetCursorScreenPos({x, area.y + ui.px(52)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + std::min(area.width - ui.px(48), ui.px(640)));
  ImGui::PushStyleColor(ImGuiCol_Text, theme.ink_2);
  ImGui::TextUnformatted(words.data(), words.data() + words.size());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  ui.Register("empty", "text", title + ": " + words, area);
}

GraphPane::Hit GraphPane::HitAt(const GraphModel& graph, double x, double y) const {
  const SceneGeometry& geometry = *graph.geometry();
  for (const SceneGroup& group : geometry.groups) {
    if (!group.Contains(x, y)) continue;
    for (int32_t i = group.boxes_begin; i < group.boxes_end; ++i) {
      const SceneBox& box = geometry.boxes[static_cast<size_t>(i)];
      if (box.Contains(x, y)) return {&box, nullptr};
    }
  }
  for (size_t i = geometry.slabs.size(); i-- > 1;) {
    const SceneSlab& slab = geometry.slabs[i];
    if (slab.Contains(x, y) && (!slab.open || y <= slab.y + M::kHead)) return {nullptr, &slab};
  }
  return {};
}

std::string GraphPane::TipOf(const Comparison& comparison, const Hit& hit) const {
  if (hit.slab != nullptr) {
    const SceneCluster& cluster = comparison.cluster(hit.slab->cluster);
    return fmt::format("{}\n{}", Visible(cluster.path), Plural(cluster.counts.nodes, "node"));
  }
  if (hit.box == nullptr) return "";
  if (hit.box->node < 0) {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(12, hit.box->members.size()); ++i)
      names += (i == 0 ? "" : ", ") + comparison.NameOf(hit.box->members[i]);
    return names + (hit.box->members.size() > 12 ? ", …" : "");
  }
  const int32_t node = hit.box->node;
  std::string text = comparison.OperatorOf(node) + "\n" + comparison.NameOf(node);
  for (const std::string& line : {comparison.TypeOf(node), comparison.ModuleOf(node),
                                  std::string(WordOf(comparison.StatusOf(node)))}) {
    if (!line.empty()) text += "\n" + line;
  }
  return text;
}

/// A drag moves the camera, a wheel zooms, a click selects or opens.
void GraphPane::Pointer(Ui& ui, GraphModel& graph, const Area& stage) {
  const Touch touch = ui.Press("stage", "canvas", "", stage);
  const ImGuiIO& io = ImGui::GetIO();
  const double dpi = ui.fonts.scale();
  const double x = (io.MousePos.x - stage.x) / dpi, y = (io.MousePos.y - stage.y) / dpi;
  if (touch.held) {
    const double dx = io.MouseDelta.x / dpi, dy = io.MouseDelta.y / dpi;
    if (ImGui::IsMouseClicked(0)) moved_ = 0;
    moved_ += std::abs(dx) + std::abs(dy);
    if (moved_ > 4) graph.Pan(dx, dy);
  }
  hover_node_ = hover_slab_ = -1;
  if (!touch.hovered) return;
  const Hit hit = HitAt(graph, graph.camera.ToSceneX(x), graph.camera.ToSceneY(y));
  if (hit.box != nullptr) hover_node_ = hit.box->node;
  if (hit.slab != nullptr) hover_slab_ = hit.slab->cluster;
  if (io.MouseWheel != 0 || io.MouseWheelH != 0) {
    if (io.KeyShift) {
      graph.Pan(io.MouseWheel * 60, 0);
    } else if (io.KeyCtrl) {
      graph.camera.Zoom(std::exp(io.MouseWheel * 0.15), x, y);
    } else {
      graph.Pan(io.MouseWheelH * 60, io.MouseWheel * 60);
    }
  }
  if (ImGui::IsMouseDragging(2)) graph.Pan(io.MouseDelta.x / dpi, io.MouseDelta.y / dpi);
  if (touch.clicked && moved_ <= 4) {
    if (hit.slab != nullptr) {
      graph.Toggle(hit.slab->cluster, io.KeyShift);
    } else if (hit.box == nullptr) {
      graph.Select(-1);
    } else if (hit.box->node >= 0) {
      graph.Select(hit.box->node);
    } else {
      graph.Unfold(*hit.box);
    }
  } else if (!touch.held && moved_ <= 4) {
    const std::string tip = TipOf(graph.comparison(), hit);
    if (!tip.empty()) ui.Tip(tip);
  }
}

void GraphPane::Canvas(Ui& ui, const Area& whole_area) {
  GraphModel& graph = *ui.model.graph();
  Area area = whole_area;
  const double dpi = ui.fonts.scale();
  const bool side_by_side =
      ui.model.mode() == Mode::kSideBySide && !graph.comparison().changes().empty();
  const float caption = side_by_side || ui.model.mode() == Mode::kBlink ? ui.px(28) : 0;
  const float gap = side_by_side ? ui.px(4) : 0;
  const bool mini = !side_by_side && area.width > ui.px(560);
  // A column of its own, so that it covers nothing.
  if (mini) area.width -= ui.px(kMinimap + 24);
  const float width = side_by_side ? (area.width - gap) / 2 : area.width;
  graph.SetStage({width / dpi, (area.height - caption) / dpi, width / dpi});
  const bool before = ui.model.show_before && !side_by_side;
  const Area corner = {area.right() + ui.px(12), area.y + caption + ui.px(12), ui.px(kMinimap),
                       std::min(MinimapHeight(ui, graph), area.height - caption - ui.px(24))};
  const Touch on_minimap = mini ? ui.Press("minimap", "minimap", "", corner) : Touch{};
  for (int pane = 0; pane < (side_by_side ? 2 : 1); ++pane) {
    const Area whole = {area.x + static_cast<float>(pane) * (width + gap), area.y, width,
                        area.height};
    const Area stage = {whole.x, whole.y + caption, width, area.height - caption};
    SceneLook look;
    look.side = side_by_side                      ? (pane == 0 ? Side::kBefore : Side::kAfter)
                : before                          ? Side::kBefore
                : ui.model.mode() == Mode::kBlink ? Side::kAfter
                                                  : Side::kUnion;
    look.selected = graph.selected();
    look.cursor = graph.cursor();
    look.hover_node = hover_node_;
    look.hover_slab = hover_slab_;
    if (graph.lit()) look.lit = &*graph.lit();
    if (!ui.model.hit_nodes().empty()) look.hits = &ui.model.hit_nodes();
    const UiScope scope(ui, !side_by_side ? "union" : pane == 0 ? "before" : "after");
    ScenePainter(ui, graph.comparison(), *graph.geometry(), graph.camera, stage, look).Paint();
    Pointer(ui, graph, stage);
    if (caption > 0) {
      const Area bar = {whole.x, whole.y, width, caption};
      ui.Fill(bar, ui.theme->surface);
      ui.Fill({bar.x, bar.bottom() - 1, bar.width, 1}, ui.theme->rule);
      const std::string_view word = look.side == Side::kBefore ? "Before" : "After";
      const float used = ui.TextIn({bar.x + ui.px(12), bar.y, bar.width, bar.height}, word,
                                   ui.font(Face::kBold, 12), ui.theme->ink);
      const SceneCounts& counts = graph.comparison().counts();
      const std::string more =
          side_by_side ? Plural(counts.nodes - (pane == 0 ? counts.added : counts.removed), "node")
                       : std::string("hold b for before");
      ui.TextIn({bar.x + ui.px(20) + used, bar.y, bar.width, bar.height}, more,
                ui.font(Face::kSans, 12), ui.theme->ink_3);
      ui.Register("caption", "text", word, bar);
    }
  }
  if (side_by_side) ui.Fill({area.x + width, area.y, gap, area.height}, ui.theme->rule);
  if (!mini) return;
  ui.Fill({area.right(), area.y, 1, area.height}, ui.theme->rule);
  Minimap(ui, corner, on_minimap);
}

void GraphPane::Minimap(Ui& ui, const Area& area, const Touch& touch) const {
  const Theme& theme = *ui.theme;
  GraphModel& graph = *ui.model.graph();
  const SceneGeometry& geometry = *graph.geometry();
  ui.Fill(area, theme.surface, 4);
  ui.Frame(area, theme.rule, 4);
  const float inset = ui.px(kMinimapInset);
  const double k = std::min((area.width - 2 * inset) / geometry.width,
                            (area.height - 2 * inset) / std::max(1.0, geometry.height));
  const float left = area.x + (area.width - static_cast<float>(geometry.width * k)) / 2;
  const float top = area.y + inset;
  const auto fill = [&](const SceneRect& rect, Color color, float least) {
    const float x = left + static_cast<float>(rect.x * k), y = top + static_cast<float>(rect.y * k);
    ui.Fill({x, y, std::max(1.0F, static_cast<float>(rect.width * k)),
             std::max(least, static_cast<float>(rect.height * k))},
            color);
  };
  float last = -1e9F;  // many slabs on one pixel are one
  for (const SceneSlab& slab : geometry.slabs) {
    if (slab.cluster == 0) continue;
    const float y = static_cast<float>(slab.y * k);
    if (!slab.open && !slab.differs && std::abs(y - last) < 0.5F) continue;
    last = y;
    fill(slab, slab.open ? theme.well_2 : theme.tick, 1);
    if (slab.open || !slab.differs) continue;
    const SceneCounts& counts = graph.comparison().cluster(slab.cluster).counts;
    const std::pair<int32_t, Color> marks[] = {{counts.changed, theme.changed.line},
                                               {counts.removed, theme.removed.line},
                                               {counts.added, theme.added.line},
                                               {counts.moved, theme.moved.line}};
    double at = 0.45;
    for (const auto& [count, color] : marks) {
      if (count > 0)
        fill({slab.x + slab.width * at, slab.y, slab.width * 0.12, slab.height}, color, 1.5F);
      at += 0.13;
    }
  }
  last = -1e9F;
  for (const SceneBox& box : geometry.boxes) {
    const SceneStatus status =
        box.node < 0 ? SceneStatus::kSame : graph.comparison().StatusOf(box.node);
    const float y = static_cast<float>(box.y * k);
    if (status == SceneStatus::kSame && std::abs(y - last) < 1) continue;
    last = y;
    const Theme::StatusColors* colors = theme.Of(status);
    fill(box, colors != nullptr ? colors->line : theme.tick_2, 1.5F);
  }
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

void GraphPane::Legend(Ui& ui, const Area& area) const {
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  ui.Fill({area.x, area.y, area.width, 1}, theme.rule);
  const Comparison* comparison = ui.model.comparison();
  if (comparison == nullptr) return;
  const SceneCounts& counts = comparison->counts();
  const std::pair<SceneStatus, int32_t> marks[] = {
      {SceneStatus::kAdded, counts.added},     {SceneStatus::kRemoved, counts.removed},
      {SceneStatus::kChanged, counts.changed}, {SceneStatus::kMoved, counts.moved},
      {SceneStatus::kDerived, counts.derived}, {SceneStatus::kSame, 1}};
  const Font font = ui.font(Face::kSans, 12);
  float x = area.x + ui.px(12);
  for (const auto& [status, count] : marks) {
    if (count == 0) continue;
    const float y = std::round(area.y + (area.height - ui.px(13)) / 2);
    if (status == SceneStatus::kSame) {
      ui.Frame({x, y, ui.px(16), ui.px(13)}, theme.rule_2, 2);
    } else {
      DrawSign(ui, x, y, ui.fonts.scale(), status);
    }
    x += ui.px(20);
    x += ui.Text(x, area.y + (area.height - font.size) / 2, WordOf(status), font, theme.ink_2) +
         ui.px(16);
  }
  const std::string_view words = comparison->scene().has_backward
                                     ? "forward runs down on the left, backward up on the right"
                                     : "runs down";
  if (area.right() - x > font.WidthOf(words) + ui.px(24))
    ui.TextRight({x, area.y, area.right() - ui.px(12) - x, area.height}, words, font, theme.ink_3);
}

}  // namespace strata::viewer

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/panes/graph_pane.h"

namespace strata::viewer {
namespace {

constexpr float kCaption = 28;
}  // namespace

SceneLook GraphPane::LookOf(Ui& ui, const GraphModel& graph) const {
  SceneLook look;
  look.selected = graph.selected();
  look.cursor = graph.cursor();
  look.labels = ui.model.labels;
  if (hover_shown_ == &graph) {
    look.hover_node = hover_node_;
    look.hover_slab = hover_slab_;
  }
  if (graph.lit()) look.lit = &*graph.lit();
  if (&graph != ui.model.graph()) return look;
  look.overlay = ui.model.overlay();
  if (ui.model.control() != nullptr) {
    look.breakpoints = &ui.model.breakpoint_nodes();
    look.stopped = ui.model.stopped_node();
  }
  // While a new graph arrives, the hits and the overlay may still be those of the one before.
  if (!ui.model.hit_nodes().empty()) look.hits = &ui.model.hit_nodes();
  return look;
}

void GraphPane::Caption(Ui& ui, const Area& bar, std::string_view title, std::string_view more) {
  ui.Fill(bar, ui.theme->surface);
  ui.Fill({bar.x, bar.bottom() - 1, bar.width, 1}, ui.theme->rule);
  const float used = ui.TextIn({bar.x + ui.px(12), bar.y, bar.width - ui.px(48), bar.height}, title,
                               ui.font(Face::kBold, 12), ui.theme->ink);
  const float left = bar.x + ui.px(20) + used;
  if (bar.right() - ui.px(36) - left > ui.px(40))
    ui.TextIn({left, bar.y, bar.right() - ui.px(36) - left, bar.height}, more,
              ui.font(Face::kSans, 12), ui.theme->ink_3);
  ui.Register("caption", "text", title, bar);
}

void GraphPane::Canvas(Ui& ui, const Area& area) {
  hover_shown_ = std::exchange(hover_graph_, nullptr);
  if (!ui.model.pinned().empty()) {
    Canvases(ui, area);
  } else if (ui.model.mode() == Mode::kSideBySide && !ui.model.comparison()->changes().empty()) {
    SideBySide(ui, area);
  } else {
    OneCanvas(ui, area);
  }
  if (hover_graph_ == nullptr) {
    hover_node_ = {};
    hover_slab_ = {};
  }
}

void GraphPane::OneCanvas(Ui& ui, const Area& whole) {
  GraphModel& graph = *ui.model.graph();
  const double dpi = ui.fonts.scale();
  const bool blink = ui.model.mode() == Mode::kBlink && !graph.comparison().changes().empty();
  const float caption = blink ? ui.px(kCaption) : 0;
  Area area = whole;
  // The minimap has a column of its own, so that it covers nothing.
  const bool mini = area.width > ui.px(560);
  if (mini) area.width -= ui.px(Minimap::kWidth + 24);
  graph.SetStage({area.width / dpi, (area.height - caption) / dpi, area.width / dpi});
  const Area corner = {area.right() + ui.px(12), area.y + caption + ui.px(12),
                       ui.px(Minimap::kWidth),
                       std::min(Minimap::HeightFor(ui, graph), area.height - caption - ui.px(24))};
  const Touch on_minimap = mini ? ui.Press("minimap", "minimap", "", corner) : Touch{};
  SceneLook look = LookOf(ui, graph);
  look.side = ui.model.show_before ? Side::kBefore : blink ? Side::kAfter : Side::kUnion;
  {
    const UiScope scope(ui, "union");
    const Area stage = {area.x, area.y + caption, area.width, area.height - caption};
    ScenePainter(ui, graph.comparison(), *graph.geometry(), graph.camera, stage, look).Paint();
    Pointer(ui, graph, stage);
    if (blink)
      Caption(ui, {area.x, area.y, whole.width, caption},
              look.side == Side::kBefore ? "Before" : "After",
              look.side == Side::kBefore ? "release b for after" : "hold b for before");
  }
  if (!mini) return;
  ui.Fill({area.right(), area.y + caption, 1, area.height}, ui.theme->rule);
  minimap_.Draw(ui, graph, corner, on_minimap);
}

void GraphPane::SideBySide(Ui& ui, const Area& area) {
  GraphModel& graph = *ui.model.graph();
  const double dpi = ui.fonts.scale();
  const float caption = ui.px(kCaption), gap = ui.px(4), width = (area.width - gap) / 2;
  graph.SetStage({width / dpi, (area.height - caption) / dpi, width / dpi});
  const SceneCounts& counts = graph.comparison().counts();
  for (const bool before : {true, false}) {
    const Area whole = {before ? area.x : area.x + width + gap, area.y, width, area.height};
    const Area stage = {whole.x, whole.y + caption, width, area.height - caption};
    SceneLook look = LookOf(ui, graph);
    look.side = before ? Side::kBefore : Side::kAfter;
    const UiScope scope(ui, before ? "before" : "after");
    // Each side has a camera of its own while they are not synchronized.
    const bool own = !before && !ui.model.synced;
    if (own) std::swap(graph.camera, right_camera_);
    ScenePainter(ui, graph.comparison(), *graph.geometry(), graph.camera, stage, look).Paint();
    Pointer(ui, graph, stage);
    if (own) std::swap(graph.camera, right_camera_);
    Caption(ui, {whole.x, whole.y, width, caption}, before ? "Before" : "After",
            Plural(counts.nodes - (before ? counts.added : counts.removed), "node"));
  }
  if (ui.model.synced) right_camera_ = graph.camera;
  ui.Fill({area.x + width, area.y, gap, area.height}, ui.theme->rule);
}

/// Up to four graphs: beside each other, or two above two.
void GraphPane::Canvases(Ui& ui, const Area& area) {
  const std::vector<Model::Canvas>& pinned = ui.model.pinned();
  const size_t count = pinned.size() + 1, columns = count == 4 ? 2 : count;
  const size_t rows = count == 4 ? 2 : 1;
  const float gap = ui.px(4), caption = ui.px(kCaption);
  const float width =
      (area.width - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  const float height =
      (area.height - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows);
  const double dpi = ui.fonts.scale();
  ui.Fill(area, ui.theme->rule);
  size_t close = count;
  for (size_t i = 0; i < count; ++i) {
    const bool current = i + 1 == count;
    GraphModel& graph = current ? *ui.model.graph() : *pinned[i].graph;
    const Area cell = {area.x + (width + gap) * static_cast<float>(i % columns),
                       area.y + (height + gap) * static_cast<float>(i / columns), width, height};
    const Area stage = {cell.x, cell.y + caption, width, height - caption};
    const UiScope scope(ui, current ? std::string("union") : fmt::format("canvas:{}", i + 1));
    ui.Fill(stage, ui.theme->bg);
    graph.SetStage({width / dpi, (height - caption) / dpi, width / dpi});
    if (graph.geometry() != nullptr) {
      ScenePainter(ui, graph.comparison(), *graph.geometry(), graph.camera, stage,
                   LookOf(ui, graph))
          .Paint();
      Pointer(ui, graph, stage);
    }
    const Area bar = {cell.x, cell.y, width, caption};
    Caption(ui, bar, current ? ui.model.Title() : pinned[i].title,
            CountsText(graph.comparison().counts()));
    if (current) {
      ui.Fill({bar.x, bar.y, bar.width, ui.px(2)}, ui.theme->accent);
      continue;
    }
    const Area cross = {bar.right() - ui.px(30), bar.y + ui.px(2), ui.px(26),
                        bar.height - ui.px(4)};
    const Touch touch = ui.Press("close", "button", "close", cross);
    ui.TextIn({cross.x + ui.px(9), cross.y, cross.width, cross.height}, "×",
              ui.font(Face::kSans, 13), touch.hovered ? ui.theme->ink : ui.theme->ink_3);
    if (touch.clicked) close = i;
  }
  ui.model.SyncCanvases();
  if (close < pinned.size()) ui.model.Unpin(close);
}

/// What the marks of a training under control mean. Returns where the next entry begins.
float GraphPane::ControlLegend(Ui& ui, const Area& area, float x) {
  const Theme& theme = *ui.theme;
  const Font font = ui.font(Face::kSans, 12);
  const float middle = area.y + area.height / 2;
  const auto words = [&](std::string_view text) {
    x += ui.px(20);
    x += ui.Text(x, middle - font.size / 2, text, font, theme.ink_2) + ui.px(16);
  };
  if (!ui.model.breakpoint_nodes().empty()) {
    ui.draw().AddCircleFilled({x + ui.px(8), middle}, ui.px(5), theme.ink);
    words("breakpoint");
  }
  if (ui.model.stopped_node().valid()) {
    for (const float bar : {3.0F, 10.0F})
      ui.Fill({x + ui.px(bar), middle - ui.px(6), ui.px(4), ui.px(12)}, theme.accent);
    words("stopped here");
  }
  return x;
}

/// The property that nodes are coloured by, and its colours. Returns where the next entry begins.
float GraphPane::OverlayLegend(Ui& ui, const Area& area, const Overlay& overlay) {
  const Theme& theme = *ui.theme;
  const Font font = ui.font(Face::kSans, 12);
  float x = area.x + ui.px(12);
  x += ui.Text(x, area.y + (area.height - font.size) / 2, overlay.label(), ui.font(Face::kBold, 12),
               theme.ink) +
       ui.px(12);
  for (const auto& [words, share] : overlay.legend()) {
    if (x + ui.px(36) + font.WidthOf(words) > area.right()) break;
    const Area box = {x, std::round(area.y + (area.height - ui.px(13)) / 2), ui.px(16), ui.px(13)};
    ui.Fill(box, share < 0 ? theme.surface : HeatOf(share).fill, 2);
    ui.Frame(box, theme.rule_2, 2);
    x += ui.px(20);
    x += ui.Text(x, area.y + (area.height - font.size) / 2, words, font, theme.ink_2) + ui.px(16);
  }
  ui.Register("legend", "text", overlay.label(), area);
  return x;
}

/// The statuses that occur. Returns where the next entry begins.
float GraphPane::StatusLegend(Ui& ui, const Area& area, float x, bool with_same) {
  const Theme& theme = *ui.theme;
  const Comparison& comparison = *ui.model.comparison();
  const SceneCounts& counts = comparison.counts();
  const std::pair<SceneStatus, bool> marks[] = {
      {SceneStatus::kAdded, counts.added > 0 || comparison.has_added_edges()},
      {SceneStatus::kRemoved, counts.removed > 0 || comparison.has_removed_edges()},
      {SceneStatus::kChanged, counts.changed > 0},
      {SceneStatus::kMoved, counts.moved > 0},
      {SceneStatus::kDerived, counts.derived > 0},
      {SceneStatus::kSame, with_same}};
  const Font font = ui.font(Face::kSans, 12);
  const float y = std::round(area.y + (area.height - ui.px(13)) / 2);
  for (const auto& [status, occurs] : marks) {
    const std::string_view word = WordOf(status);
    const float width = ui.px(20) + font.WidthOf(word);
    if (!occurs || x + width + ui.px(12) > area.right()) continue;
    if (status == SceneStatus::kSame) {
      ui.Frame({x, y, ui.px(16), ui.px(13)}, theme.rule_2, 2);
    } else {
      DrawSign(ui, x, y, ui.fonts.scale(), status, theme.ink_3);
    }
    ui.Text(x + ui.px(20), area.y + (area.height - font.size) / 2, word, font, theme.ink_2);
    ui.Register(fmt::format("legend:{}", word), "text", word, {x, y, width, ui.px(13)});
    x += width + ui.px(16);
  }
  return x;
}

void GraphPane::Legend(Ui& ui, const Area& area) const {
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  ui.Fill({area.x, area.y, area.width, 1}, theme.rule);
  const Comparison* comparison = ui.model.comparison();
  if (comparison == nullptr) return;
  const Overlay* overlay = ui.model.overlay();
  float x = overlay != nullptr ? OverlayLegend(ui, area, *overlay) : area.x + ui.px(12);
  x = StatusLegend(ui, area, x, overlay == nullptr);
  x = ControlLegend(ui, area, x);
  const Font font = ui.font(Face::kSans, 12);
  const std::string_view words = comparison->scene().has_backward
                                     ? "forward runs down on the left, backward up on the right"
                                     : "runs down";
  if (area.right() - x > font.WidthOf(words) + ui.px(24))
    ui.TextRight({x, area.y, area.right() - ui.px(12) - x, area.height}, words, font, theme.ink_3);
}

}  // namespace strata::viewer

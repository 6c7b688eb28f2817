#include "viewer/panes/graph_pane.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

using M = SceneMeasures;

constexpr float kToolbar = 44, kLegend = 28;
constexpr float kZoomTools = 158;  // width of what stands at the right of the toolbar

constexpr std::pair<Mode, const char*> kModes[] = {
    {Mode::kUnified, "Unified"}, {Mode::kSideBySide, "Side by side"}, {Mode::kBlink, "Blink"}};

float ModeWidth(const Ui& ui, const char* label) {
  return ui.font(Face::kBold, 12).WidthOf(label) + ui.px(20);
}

float ModesWidth(const Ui& ui) {
  float width = 0;
  for (const auto& [mode, label] : kModes)
    width += ModeWidth(ui, label);
  return width;
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
  // What does not fit is left to its keys.
  const float end = area.right() - ui.px(kZoomTools + 20);
  const bool differs = !graph->comparison().changes().empty();
  if (differs && x + ModesWidth(ui) <= end) {
    for (const auto& [mode, label] : kModes) {
      const float width = ModeWidth(ui, label);
      if (ui.Button(std::string("mode:") + label, label, {x, y, width, height},
                    ui.model.mode() == mode))
        ui.model.SetMode(mode);
      x += width - ui.px(1);
    }
    x += ui.px(12);
  }
  const float check = ui.font(Face::kSans, 12).WidthOf("Changed only +") + ui.px(24);
  if (differs && x + check + ui.px(84) <= end) {
    const bool only = ui.model.hops() != SceneView::kAllHops;
    if (ui.Checkbox("changed-only", "Changed only +", {x, y, check, height}, only))
      ui.model.SetHops(only ? SceneView::kAllHops : 1);
    x += check + ui.px(4);
    // A click on the box has changed it by now.
    int hops = ui.model.hops() != SceneView::kAllHops ? ui.model.hops() : 1;
    if (ui.Choice("hops", {x, y, ui.px(80), height}, {"0 hops", "1 hop", "2 hops", "3 hops"}, hops))
      ui.model.SetHops(hops);
    x += ui.px(88);
  }
  x = OverlayChoice(ui, {x, y, area.right() - x, height});
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

float GraphPane::OverlayChoice(Ui& ui, const Area& area) const {
  const auto* list = ui.model.overlays();
  const float width = ui.px(148), rest = ui.px(204);  // what stands at the right
  if (list == nullptr || list->empty() || area.width < width + rest) return area.x;
  std::vector<std::string> labels = {"No overlay"};
  int chosen = 0;
  for (const auto& [key, label] : *list) {
    if (key == ui.model.overlay_key) chosen = static_cast<int>(labels.size());
    labels.push_back(label);
  }
  if (ui.Choice("overlay", {area.x, area.y, width, area.height}, labels, chosen))
    ui.model.overlay_key = chosen == 0 ? "" : (*list)[static_cast<size_t>(chosen - 1)].first;
  return area.x + width + ui.px(8);
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
    words = ui.model.has_contents() ? "Choose a pass on the left."
                                    : "Open the trace of the training: Ctrl+O.";
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
    for (const BoxId id : group.boxes) {
      const SceneBox& box = geometry.boxes[id];
      if (box.Contains(x, y)) return {&box, nullptr};
    }
  }
  // Children stand after their parents. The first slab is the root, which has no head.
  for (const SceneSlab& slab : std::views::reverse(std::views::drop(geometry.slabs.values(), 1))) {
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
  if (!hit.box->node.valid()) {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(12, hit.box->members.size()); ++i)
      names += (i == 0 ? "" : ", ") + comparison.NameOf(hit.box->members[i]);
    return names + (hit.box->members.size() > 12 ? ", …" : "");
  }
  const SceneNodeId node = hit.box->node;
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
  if (!touch.hovered) return;
  hover_graph_ = &graph;
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
      graph.Select({});
    } else if (hit.box->node.valid()) {
      graph.Select(hit.box->node);
    } else {
      graph.Unfold(*hit.box);
    }
  } else if (!touch.held && moved_ <= 4) {
    const std::string tip = TipOf(graph.comparison(), hit);
    if (!tip.empty()) ui.Tip(tip);
  }
}

}  // namespace strata::viewer

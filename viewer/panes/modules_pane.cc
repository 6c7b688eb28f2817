#include "viewer/panes/modules_pane.h"

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// A triangle that points down where the row is open, else to the right.
void DrawFold(Ui& ui, float x, float y, bool is_open) {
  const float u = ui.px(1);
  if (is_open) {
    ui.draw().AddTriangleFilled({x - 4 * u, y - 2.5F * u}, {x + 4 * u, y - 2.5F * u},
                                {x, y + 3.5F * u}, ui.theme->ink_2);
  } else {
    ui.draw().AddTriangleFilled({x - 2.5F * u, y - 4 * u}, {x - 2.5F * u, y + 4 * u},
                                {x + 3.5F * u, y}, ui.theme->ink_2);
  }
}

}  // namespace

std::vector<ModulesPane::TreeRow> ModulesPane::RowsOf(const Comparison& comparison) const {
  std::vector<TreeRow> rows, pending;
  const auto push_children = [&](ClusterId cluster, int depth) {
    const std::vector<ClusterId>& children = comparison.ChildrenOf(cluster);
    for (size_t i = children.size(); i-- > 0;)
      pending.push_back({children[i], depth});
  };
  push_children(Scene::kRoot, 0);
  while (!pending.empty()) {
    const TreeRow row = pending.back();
    pending.pop_back();
    rows.push_back(row);
    if (open_.contains(comparison.cluster(row.cluster).path))
      push_children(row.cluster, row.depth + 1);
  }
  return rows;
}

void ModulesPane::DrawRow(Ui& ui, GraphModel& graph, const TreeRow& row, const Area& at) {
  const Theme& theme = *ui.theme;
  const Comparison& comparison = graph.comparison();
  const SceneCluster& cluster = comparison.cluster(row.cluster);
  const bool has_children = !comparison.ChildrenOf(row.cluster).empty();
  const bool is_open = open_.contains(cluster.path), is_here = row.cluster == graph.cursor();
  const float left = at.x + ui.px(12) + ui.px(14) * static_cast<float>(row.depth);
  const std::string path = Visible(cluster.path);
  if (has_children) {
    const Touch fold = ui.Press("open:" + path, "toggle", path,
                                {left - ui.px(6), at.y, ui.px(18), at.height}, is_open);
    if (fold.clicked && !open_.erase(cluster.path)) open_.insert(cluster.path);
  }
  const Touch touch = ui.Press(path, "row", path + " " + CountsText(cluster.counts), at, is_here);
  if (is_here || touch.hovered) ui.Fill(at, is_here ? theme.accent_fill : theme.well);
  if (has_children) DrawFold(ui, left + ui.px(3), at.y + at.height / 2, is_open);
  const bool differs = cluster.counts.differences() > 0;
  const float badges = ui.Counts(cluster.counts, at.right() - ui.px(12), at.y + at.height / 2, 11);
  const std::string label = cluster.repeats > 0
                                ? Visible(cluster.label) + " ×" + std::to_string(cluster.repeats)
                                : Visible(cluster.label);
  ui.TextIn({left + ui.px(12), at.y, badges - left - ui.px(16), at.height}, label,
            ui.font(differs ? Face::kBold : Face::kSans, 12), differs ? theme.ink : theme.ink_2);
  if (!touch.clicked) return;
  open_.insert(cluster.path);
  graph.RevealCluster(row.cluster);
}

void ModulesPane::Draw(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "modules");
  ui.Fill(area, theme.surface);
  const float head = ui.px(32);
  ui.Fill({area.x, area.y, area.width, 1}, theme.rule);
  const Area title = {area.x + ui.px(12), area.y, area.width - ui.px(24), head};
  ui.TextIn(title, "Modules", ui.font(Face::kBold, 12), theme.ink);
  GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const Comparison& comparison = graph->comparison();
  ui.TextRight(title, Plural(comparison.counts().nodes, "node"), ui.font(Face::kSans, 12),
               theme.ink_3);
  const std::vector<TreeRow> rows = RowsOf(comparison);
  UiPanel panel(ui, "tree", {area.x, area.y + head, area.width, area.height - head}, theme.surface);
  ImGuiListClipper clipper;
  const float height = ui.px(22);
  clipper.Begin(static_cast<int>(rows.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      DrawRow(ui, *graph, rows[static_cast<size_t>(i)], panel.Next(height));
  }
}

}  // namespace strata::viewer

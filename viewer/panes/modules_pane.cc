#include "viewer/panes/modules_pane.h"

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

struct ModuleRow {
  ClusterId cluster;
  int depth = 0;
};

}  // namespace

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
  std::vector<ModuleRow> rows, pending;
  const auto push_children = [&](ClusterId cluster, int depth) {
    const std::vector<ClusterId>& children = comparison.ChildrenOf(cluster);
    for (size_t i = children.size(); i-- > 0;)
      pending.push_back({children[i], depth});
  };
  push_children(Scene::kRoot, 0);
  while (!pending.empty()) {
    const ModuleRow row = pending.back();
    pending.pop_back();
    rows.push_back(row);
    if (open_.contains(comparison.cluster(row.cluster).path))
      push_children(row.cluster, row.depth + 1);
  }
  const ClusterId here = graph->cursor();
  UiPanel panel(ui, "tree", {area.x, area.y + head, area.width, area.height - head}, theme.surface);
  ImGuiListClipper clipper;
  const float height = ui.px(22);
  clipper.Begin(static_cast<int>(rows.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const ModuleRow& row = rows[static_cast<size_t>(i)];
      const SceneCluster& cluster = comparison.cluster(row.cluster);
      const Area at = panel.Next(height);
      const bool has_children = !comparison.ChildrenOf(row.cluster).empty();
      const bool is_open = open_.contains(cluster.path);
      const float left = at.x + ui.px(12) + ui.px(14) * static_cast<float>(row.depth);
      const std::string path = Visible(cluster.path);
      if (has_children) {
        const Touch fold = ui.Press("open:" + path, "toggle", path,
                                    {left - ui.px(6), at.y, ui.px(18), height}, is_open);
        if (fold.clicked && !open_.erase(cluster.path)) open_.insert(cluster.path);
      }
      const Touch touch =
          ui.Press(path, "row", path + " " + CountsText(cluster.counts), at, row.cluster == here);
      if (row.cluster == here || touch.hovered)
        ui.Fill(at, row.cluster == here ? theme.accent_fill : theme.well);
      if (has_children) {
        const float x = left + ui.px(3), y = at.y + height / 2, u = ui.px(1);
        if (is_open) {
          ui.draw().AddTriangleFilled({x - 4 * u, y - 2.5F * u}, {x + 4 * u, y - 2.5F * u},
                                      {x, y + 3.5F * u}, theme.ink_2);
        } else {
          ui.draw().AddTriangleFilled({x - 2.5F * u, y - 4 * u}, {x - 2.5F * u, y + 4 * u},
                                      {x + 3.5F * u, y}, theme.ink_2);
        }
      }
      const bool differs = cluster.counts.differences() > 0;
      const float badges = ui.Counts(cluster.counts, at.right() - ui.px(12), at.y + height / 2, 11);
      const std::string label =
          cluster.repeats > 0 ? Visible(cluster.label) + " ×" + std::to_string(cluster.repeats)
                              : Visible(cluster.label);
      ui.TextIn({left + ui.px(12), at.y, badges - left - ui.px(16), height}, label,
                ui.font(differs ? Face::kBold : Face::kSans, 12),
                differs ? theme.ink : theme.ink_2);
      if (touch.clicked) {
        open_.insert(cluster.path);
        graph->RevealCluster(row.cluster);
      }
    }
  }
}

}  // namespace strata::viewer

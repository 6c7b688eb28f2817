#include "viewer/panes/search_pane.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// A pass or graph whose name fits.
void DrawSubject(Ui& ui, SubjectId id, const Area& at) {
  const Theme& theme = *ui.theme;
  const Subject& subject = ui.model.contents().subjects[id];
  const Touch touch = ui.Press(fmt::format("pass:{}", subject.index), "row", subject.Title(), at);
  if (touch.hovered) ui.Fill(at, theme.well);
  const float title = ui.TextIn({at.x + ui.px(12), at.y, at.width - ui.px(60), at.height},
                                subject.Title(), ui.font(Face::kBold, 12), theme.ink);
  const std::string place = ui.model.contents().PlaceOf(subject);
  ui.TextRight({at.x + title + ui.px(20), at.y, at.width - title - ui.px(32), at.height},
               place.empty() ? "graph" : place, ui.font(Face::kSans, 11), theme.ink_3);
  if (touch.clicked) ui.model.Show(id);
}

void DrawNode(Ui& ui, const Comparison& c, SceneNodeId node, const Area& at) {
  const Theme& theme = *ui.theme;
  const bool selected = node == ui.model.selected();
  const Touch touch = ui.Press("hit:" + c.NameOf(node), "row", c.LabelOf(node), at, selected);
  if (selected || touch.hovered) ui.Fill(at, selected ? theme.accent_fill : theme.well);
  const std::string_view sign = SignOf(c.StatusOf(node));
  ui.TextIn({at.x + ui.px(12), at.y, ui.px(14), at.height}, sign, ui.font(Face::kBold, 12),
            theme.TextOf(c.StatusOf(node)));
  const float half = at.width * 0.55F;
  ui.TextIn({at.x + ui.px(26), at.y, half - ui.px(30), at.height}, c.NameOf(node),
            ui.font(Face::kMono, 11), theme.ink);
  ui.TextIn({at.x + half, at.y, at.width - half - ui.px(12), at.height}, c.LabelOf(node),
            ui.font(Face::kSans, 11), theme.ink_3);
  if (touch.clicked) ui.model.Reveal(node);
}

}  // namespace

void SearchPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "search");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  Model& model = ui.model;
  std::string text = model.filter();
  const Area field = {area.x + ui.px(12), area.y + ui.px(8), area.width - ui.px(24), ui.px(28)};
  const bool focus = std::exchange(focus_, false);
  if (ui.Input("field", "Name, operator, module, bytes>1e6", field, text, focus))
    model.SetFilter(text);
  const float top = ui.px(44);
  UiPanel panel(ui, "hits", {area.x, area.y + top, area.width, area.height - top}, theme.surface);
  const auto words = [&](const std::string& line, Color color) {
    const Area at = panel.Next(ui.px(24));
    ui.TextIn({at.x + ui.px(12), at.y, at.width - ui.px(24), at.height}, line,
              ui.font(Face::kSans, 11), color);
    return at;
  };
  if (model.filter().empty()) {
    words("A regular expression, or a test: bytes>1e6,", theme.ink_3);
    words("flops>=2e9, dtype=bf16, status=added.", theme.ink_3);
    return;
  }
  const SearchHits& hits = model.hits();
  std::string counts = Plural(static_cast<int64_t>(hits.nodes.size()), "node");
  if (!hits.subjects.empty())
    counts += ", " + Plural(static_cast<int64_t>(hits.subjects.size()), "pass", "passes");
  if (hits.nodes.empty() && hits.subjects.empty() && !model.searching())
    counts = fmt::format("Nothing matches “{}”", Visible(model.filter()));
  ui.Register("counts", "text", counts, words(counts, theme.ink_3));
  const float height = ui.px(24);
  for (size_t i = 0; model.has_contents() && i < std::min<size_t>(6, hits.subjects.size()); ++i) {
    if (IdsOf(model.contents().subjects).Contains(hits.subjects[i]))
      DrawSubject(ui, hits.subjects[i], panel.Next(height));
  }
  const Comparison* c = model.comparison();
  if (c == nullptr) return;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(hits.nodes.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Area at = panel.Next(height);
      const SceneNodeId node = hits.nodes[static_cast<size_t>(i)];
      // Others are of the comparison before.
      if (c->nodes().Contains(node)) DrawNode(ui, *c, node, at);
    }
  }
}

}  // namespace strata::viewer

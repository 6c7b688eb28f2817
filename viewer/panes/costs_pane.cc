#include "viewer/panes/costs_pane.h"

#include <cstddef>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr float kNumber = 100, kPlaces = 48;  // widths of columns
constexpr const char* kHeads[] = {"Δ time", "Δ bytes moved", "Δ peak"};

}  // namespace

void CostsPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "costs");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const CostSheet* sheet =
      sheet_.Get(ui.model.workers(), ui.model.ComparisonKey(),
                 [shared = graph->shared_comparison()] { return CostSheetOf(*shared); });
  if (sheet == nullptr) return;
  if (sheet->lists.empty()) return ui.Sentence(area, "empty", "No cost changed.");
  const float line =
      ui.px(12) + ui.Wrapped({area.x + ui.px(12), area.y + ui.px(6), area.width - ui.px(24), 0},
                             sheet->words, ui.font(Face::kSans, 11), theme.ink_2);
  ui.Register("words", "text", sheet->words, {area.x, area.y, area.width, line});
  UiPanel panel(ui, "lists", {area.x, area.y + line, area.width, area.height - line},
                theme.surface);
  for (const CostSheet::List& list : sheet->lists)
    List(ui, panel, list);
}

void CostsPane::List(Ui& ui, UiPanel& panel, const CostSheet::List& list) const {
  const UiScope scope(ui, list.title);
  const Font font = ui.font(Face::kBold, 11);
  const Area head = panel.Next(ui.px(26));
  float x = head.x + ui.px(12);
  for (const char* title : kHeads) {
    ui.TextRight({x, head.y, ui.px(kNumber - 12), head.height}, title, font, ui.theme->ink_3);
    x += ui.px(kNumber);
  }
  ui.TextIn({x + ui.px(kPlaces), head.y, head.right() - x - ui.px(kPlaces), head.height},
            list.title, font, ui.theme->ink);
  for (size_t i = 0; i < list.rows.size(); ++i) {
    const Area at = panel.Next(ui.px(22));
    if (panel.Shows(at)) Row(ui, at, list.rows[i], i);
  }
}

void CostsPane::Row(Ui& ui, const Area& area, const CostSheet::Row& row, size_t index) const {
  const Theme& theme = *ui.theme;
  const CostChange& change = row.change;
  const std::string cells[] = {ChangeText(change.us * 1e-3, TimeText),
                               ChangeText(change.bytes, BytesText),
                               ChangeText(change.peak, BytesText)};
  const double values[] = {change.us, change.bytes, change.peak};
  const std::string what = Visible(change.what);
  const Touch touch =
      ui.Press(fmt::format("row:{}", index), "row",
               fmt::format("{} {} {} {}", cells[0], cells[1], cells[2], what), area);
  if (touch.hovered && row.node.valid()) ui.Fill(area, theme.well);
  float x = area.x + ui.px(12);
  for (size_t i = 0; i < std::size(cells); ++i) {
    ui.TextRight({x, area.y, ui.px(kNumber - 12), area.height}, cells[i], ui.font(Face::kSans, 11),
                 values[i] > 0   ? theme.added.text
                 : values[i] < 0 ? theme.removed.text
                                 : theme.ink_3);
    x += ui.px(kNumber);
  }
  if (change.places > 1) {
    ui.TextRight({x, area.y, ui.px(kPlaces - 8), area.height}, fmt::format("{}×", change.places),
                 ui.font(Face::kSans, 11), theme.ink_2);
  }
  x += ui.px(kPlaces);
  const float room = area.right() - ui.px(12) - x;
  const Font font = ui.font(row.node.valid() ? Face::kMono : Face::kSans, 11);
  const bool alone = change.where.empty();
  ui.TextIn({x, area.y, room * (alone ? 1 : 0.6F), area.height}, what, font, theme.ink);
  ui.TextIn({x + room * 0.62F, area.y, room * 0.38F, area.height}, Visible(change.where),
            ui.font(Face::kSans, 11), theme.ink_3);
  if (touch.clicked && row.node.valid()) ui.model.Reveal(row.node);
}

}  // namespace strata::viewer

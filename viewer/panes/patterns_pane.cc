#include "viewer/panes/patterns_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostPlaces = 48, kMostSingles = 100;

}  // namespace

const ChangeList* PatternsPane::Changes(Ui& ui) {
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return nullptr;
  return list_.Get(ui.model.workers(), fmt::format("{}", graph->comparison().id()),
                   [shared = graph->shared_comparison()] { return MakeChangeList(*shared); });
}

void PatternsPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "patterns");
  const Theme& theme = *ui.theme;
  UiPanel panel(ui, "sheet", area, theme.surface);
  const ChangeList* list = Changes(ui);
  if (list == nullptr) return;
  if (list->patterns.empty() && list->singles.empty()) {
    const Area at = panel.Next(ui.px(40));
    ui.TextIn({at.x + ui.px(16), at.y, at.width, at.height}, "No change repeats.",
              ui.font(Face::kSans, 12), theme.ink_2);
    return;
  }
  for (size_t i = 0; i < list->patterns.size(); ++i)
    Pattern(ui, panel, list->patterns[i], i);
  if (list->singles.empty()) return;
  panel.Skip(ui.px(8));
  const Area title = panel.Next(ui.px(28));
  ui.TextIn(
      {title.x + ui.px(16), title.y, title.width, title.height},
      fmt::format("{} at one place", Plural(static_cast<int64_t>(list->singles.size()), "change")),
      ui.font(Face::kBold, 13), theme.ink);
  for (size_t i = 0; i < std::min(list->singles.size(), kMostSingles); ++i)
    Single(ui, panel.Next(ui.px(26)), list->singles[i], i);
  if (list->singles.size() > kMostSingles) {
    const Area at = panel.Next(ui.px(24));
    ui.TextIn({at.x + ui.px(16), at.y, at.width, at.height},
              fmt::format("and {} more in the table", list->singles.size() - kMostSingles),
              ui.font(Face::kSans, 12), theme.ink_3);
  }
}

void PatternsPane::Pattern(Ui& ui, UiPanel& panel, const Change& change, size_t index) const {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, fmt::format("pattern:{}", index));
  panel.Skip(ui.px(10));
  const Area head = panel.Next(ui.px(24));
  const Area inner = {head.x + ui.px(16), head.y, head.width - ui.px(32), head.height};
  const float begin = ui.Counts(change.counts, inner.right(), head.y + head.height / 2, 12);
  ui.TextIn({inner.x, inner.y, begin - inner.x - ui.px(8), inner.height}, change.title,
            ui.font(Face::kBold, 13), theme.ink);
  ui.Register("title", "text", change.title, inner);
  const Area where = panel.Next(ui.px(20));
  ui.TextIn({where.x + ui.px(16), where.y, where.width - ui.px(32), where.height}, change.where,
            ui.font(Face::kSans, 12), theme.ink_2);
  ui.Register("where", "text", change.where, where);
  panel.Skip(ui.px(6));
  const size_t count = std::min(change.places.size(), kMostPlaces);
  const float width = ui.px(132), gap = ui.px(8), height = ui.px(64);
  const size_t columns =
      std::max<size_t>(1, static_cast<size_t>((panel.width() - ui.px(32) + gap) / (width + gap)));
  for (size_t row = 0; row * columns < count; ++row) {
    const Area line = panel.Next(height + gap);
    if (!panel.Shows(line)) continue;
    for (size_t k = row * columns; k < std::min(count, (row + 1) * columns); ++k) {
      const float x = line.x + ui.px(16) + static_cast<float>(k - row * columns) * (width + gap);
      Place(ui, {x, line.y, width, height}, change.places[k], fmt::format("place:{}", k));
    }
  }
  if (change.places.size() > kMostPlaces) {
    const Area more = panel.Next(ui.px(20));
    ui.TextIn({more.x + ui.px(16), more.y, more.width, more.height},
              fmt::format("and {} equal places more", change.places.size() - kMostPlaces),
              ui.font(Face::kSans, 12), theme.ink_3);
  }
}

/// A small picture of the nodes of a place, with its name.
void PatternsPane::Place(Ui& ui, const Area& area, const ChangePlace& place,
                         const std::string& name) const {
  const Theme& theme = *ui.theme;
  const Comparison& c = *ui.model.comparison();
  const Touch touch = ui.Press(name, "place", place.where, area, false, !place.nodes.empty());
  ui.Fill(area, theme.surface, 4);
  ui.Frame(area,
           place.deviates  ? theme.ink
           : touch.hovered ? theme.ink_2
                           : theme.rule,
           4, place.deviates ? 2 : 1);
  const float label = ui.px(20);
  const Area words = {area.x + ui.px(6), area.bottom() - label, area.width - ui.px(12), label};
  const std::string_view right = place.deviates ? "differs" : "=";
  const Font small = ui.font(place.deviates ? Face::kBold : Face::kSans, 10);
  const float right_width = small.WidthOf(right);
  ui.TextRight(words, right, small, place.deviates ? theme.ink : theme.ink_3);
  ui.TextIn({words.x, words.y, words.width - right_width - ui.px(6), words.height}, place.where,
            ui.font(Face::kSans, 10), theme.ink_2);
  const float room_x = area.width - ui.px(12), room_y = area.height - label - ui.px(10);
  if (place.nodes.empty()) {
    ui.TextIn({area.x + ui.px(6), area.y, room_x, area.height - label}, "no change",
              ui.font(Face::kSans, 11), theme.ink_3);
  } else {
    const auto count = static_cast<float>(place.nodes.size());
    const float columns = std::max(7.0F, std::ceil(std::sqrt(count * room_x / room_y)));
    const float rows = std::ceil(count / columns);
    const float step = std::min({ui.px(17), room_x / columns, room_y / rows});
    const float size = std::max(1.0F, step - std::max(1.0F, step * 0.18F));
    for (size_t i = 0; i < std::min<size_t>(place.nodes.size(), 400); ++i) {
      const SceneStatus status = c.StatusOf(place.nodes[i]);
      const Theme::StatusColors* colors = theme.Of(status);
      const auto k = static_cast<float>(i);
      const Area mark = {std::round(area.x + ui.px(6) + std::fmod(k, columns) * step),
                         std::round(area.y + ui.px(6) + std::floor(k / columns) * step), size,
                         size};
      ui.Fill(mark, colors != nullptr ? colors->fill : theme.surface);
      ui.Frame(mark, colors != nullptr ? colors->line : theme.edge, 0,
               status == SceneStatus::kAdded ? 2 : 1.5F);
    }
  }
  if (touch.hovered) ui.Tip(place.deviates ? place.where + "\n" + place.what : place.where);
  if (touch.clicked) ui.model.Reveal(place.nodes.front());
}

void PatternsPane::Single(Ui& ui, const Area& area, const Change& change, size_t index) const {
  const Theme& theme = *ui.theme;
  const Touch touch = ui.Press(fmt::format("single:{}", index), "row", change.title, area);
  if (touch.hovered) ui.Fill(area, theme.well);
  const Area inner = {area.x + ui.px(16), area.y, area.width - ui.px(32), area.height};
  const float begin = ui.Counts(change.counts, inner.right(), area.y + area.height / 2, 11);
  const float half = (begin - inner.x) * 0.62F;
  ui.TextIn({inner.x, inner.y, half - ui.px(8), inner.height}, change.title,
            ui.font(Face::kBold, 12), theme.ink);
  ui.TextIn({inner.x + half, inner.y, begin - inner.x - half - ui.px(8), inner.height},
            change.where, ui.font(Face::kSans, 12), theme.ink_2);
  if (touch.clicked && !change.places.front().nodes.empty())
    ui.model.Reveal(change.places.front().nodes.front());
}

}  // namespace strata::viewer

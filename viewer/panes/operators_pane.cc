#include "viewer/panes/operators_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

std::string Signed(int64_t value) {
  if (value == 0) return "·";
  return value > 0 ? "+" + NumberText(value) : NumberText(value);
}

struct OperatorColumn {
  const char* title;
  float share;  // of the width
};
constexpr OperatorColumn kOperatorColumns[] = {
    {"operator", 0.30F}, {"before", 0.09F}, {"after", 0.09F}, {"difference", 0.10F},
    {"FLOPs", 0.13F},    {"bytes", 0.13F},  {"time", 0.11F}};

}  // namespace

void OperatorsPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "operators");
  ui.Fill(area, ui.theme->surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const std::vector<OperatorRow>* rows =
      rows_.Get(ui.model.workers(), ui.model.ComparisonKey(),
                [shared = graph->shared_comparison()] { return OperatorsOf(*shared); });
  const float height = ui.px(24);
  Head(ui, {area.x, area.y, area.width, height});
  const Area content = {area.x, area.y + height, area.width, area.height - height};
  if (rows == nullptr) return;
  if (rows->empty()) return ui.Sentence(content, "empty", "This graph calls no operator.");
  const std::string key = fmt::format("{} {}", ui.model.ComparisonKey(), sort_);
  if (key != key_) {
    key_ = key;
    shown_ = *rows;
    const auto value = [&](const OperatorRow& row) -> double {
      switch (sort_) {
        case 1:
          return row.before;
        case 2:
          return row.after;
        case 3:
          return std::abs(row.after - row.before);
        case 4:
          return row.flops;
        case 5:
          return row.bytes;
        case 6:
          return row.time_ns;
        default:
          return 0;
      }
    };
    if (sort_ == 0) std::ranges::stable_sort(shown_, {}, &OperatorRow::op);
    if (sort_ > 0)
      std::ranges::stable_sort(
          shown_, [&](const OperatorRow& a, const OperatorRow& b) { return value(a) > value(b); });
  }
  int32_t most = 1;
  for (const OperatorRow& row : shown_)
    most = std::max({most, row.before, row.after});
  UiPanel panel(ui, "rows", content, ui.theme->surface);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(shown_.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      Row(ui, panel.Next(height), shown_[static_cast<size_t>(i)], most);
  }
}

void OperatorsPane::Head(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.bg);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  float x = area.x + ui.px(12);
  const float width = area.width - ui.px(34);
  int index = 0;
  for (const OperatorColumn& column : kOperatorColumns) {
    const Area cell = {x, area.y, width * column.share - ui.px(8), area.height};
    const std::string title = std::string(column.title) + (sort_ == index ? " ↓" : "");
    const Touch touch =
        ui.Press(std::string("sort:") + column.title, "header", title, cell, sort_ == index);
    const Font font = ui.font(Face::kBold, 11);
    const Color color = touch.hovered ? theme.ink : theme.ink_2;
    if (index == 0) {
      ui.TextIn(cell, title, font, color);
    } else {
      ui.TextRight(cell, title, font, color);
    }
    if (touch.clicked) sort_ = sort_ == index ? -1 : index;
    x += width * column.share;
    ++index;
  }
}

void OperatorsPane::Row(Ui& ui, const Area& area, const OperatorRow& row, int32_t most) const {
  const Theme& theme = *ui.theme;
  const int32_t difference = row.after - row.before;
  const Touch touch = ui.Press("row:" + Visible(row.op), "row",
                               fmt::format("{} → {}", row.before, row.after), area);
  if (touch.hovered) ui.Fill(area, theme.well);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  const auto known = [](double value, std::string words) {
    return value > 0 ? std::move(words) : std::string("–");
  };
  const std::string cells[] = {Visible(row.op),
                               NumberText(row.before),
                               NumberText(row.after),
                               Signed(difference),
                               known(row.flops, FlopsText(row.flops)),
                               known(row.bytes, BytesText(row.bytes)),
                               TimeText(row.time_ns * 1e-6)};
  float x = area.x + ui.px(12);
  const float width = area.width - ui.px(22);
  for (size_t i = 0; i < std::size(kOperatorColumns); ++i) {
    const Area cell = {x, area.y, width * kOperatorColumns[i].share - ui.px(8), area.height};
    if (i == 0) {
      ui.TextIn(cell, cells[i], ui.font(Face::kMono, 11), theme.ink);
    } else {
      const Color color = i != 3           ? theme.ink_2
                          : difference > 0 ? theme.added.text
                          : difference < 0 ? theme.removed.text
                                           : theme.ink_3;
      ui.TextRight(cell, cells[i], ui.font(Face::kSans, 11), color);
    }
    x += width * kOperatorColumns[i].share;
  }
  // The calls of both sides in grey, and the difference in its colour.
  const float room = area.right() - ui.px(12) - x;
  const float common =
      room * static_cast<float>(std::min(row.before, row.after)) / static_cast<float>(most);
  const float rest = room * static_cast<float>(std::abs(difference)) / static_cast<float>(most);
  const float y = area.y + ui.px(8), height = ui.px(8);
  ui.Fill({x, y, common, height}, theme.tick_2);
  if (difference != 0)
    ui.Fill({x + common, y, std::max(1.0F, rest), height},
            difference > 0 ? theme.added.line : theme.removed.line);
  if (touch.clicked && row.first.valid()) ui.model.Reveal(row.first);
}

}  // namespace strata::viewer

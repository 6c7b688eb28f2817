#include "viewer/panes/table_pane.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// What a column of a node shows; the first one is the status.
std::string CellOf(const Comparison& c, SceneNodeId node, int column) {
  switch (column) {
    case 0:
      return fmt::format("{} {}", SignOf(c.StatusOf(node)), WordOf(c.StatusOf(node)));
    case 1: {
      const std::string before = c.NameBefore(node);
      const bool renamed =
          c.node(node).after.valid() && !before.empty() && before != c.NameOf(node);
      return renamed ? fmt::format("{} → {}", before, c.NameOf(node)) : c.NameOf(node);
    }
    case 2:
      return c.LabelOf(node);
    case 3: {
      const Pair* pair = c.PairOf(node);
      const std::string words = pair != nullptr ? WhatChanged(*pair) : "";
      return words.empty() ? "–" : words;
    }
    case 4: {
      const std::string type = ShortType(c.TypeOf(node));
      return type.empty() ? "–" : type;
    }
    case 5: {
      const std::string module = c.ModuleOf(node);
      return module.empty() ? "–" : module;
    }
    default: {
      const Phase phase = c.PhaseOf(node);
      return phase == Phase::kUnknown ? "–" : std::string(ToString(phase));
    }
  }
}

/// Root causes first: what a reader of the table looks for.
int RankOf(SceneStatus status) {
  constexpr std::array kOrder = {SceneStatus::kChanged, SceneStatus::kAdded,
                                 SceneStatus::kRemoved, SceneStatus::kMoved,
                                 SceneStatus::kDerived, SceneStatus::kSame};
  return static_cast<int>(std::ranges::find(kOrder, status) - kOrder.begin());
}

std::vector<SceneNodeId> RowsOf(const Comparison& c, bool all, const std::string& filter, int sort,
                                bool down) {
  std::vector<SceneNodeId> rows;
  if (!filter.empty()) {
    for (SceneNodeId node : SearchNodes(c, filter)) {
      if (all || c.StatusOf(node) != SceneStatus::kSame) rows.push_back(node);
    }
  } else if (all) {
    for (SceneNodeId i : c.nodes())
      rows.push_back(i);
  } else {
    rows = c.changes();
  }
  if (sort <= 0) {
    std::ranges::stable_sort(rows, [&](SceneNodeId a, SceneNodeId b) {
      const int x = RankOf(c.StatusOf(a)), y = RankOf(c.StatusOf(b));
      return down ? x > y : x < y;
    });
    return rows;
  }
  std::vector<std::pair<std::string, SceneNodeId>> keyed;
  keyed.reserve(rows.size());
  for (SceneNodeId node : rows)
    keyed.emplace_back(CellOf(c, node, sort), node);
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return down ? a.first > b.first : a.first < b.first;
  });
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = keyed[i].second;
  return rows;
}

}  // namespace

const std::vector<TablePane::Column>& TablePane::Columns() {
  static const std::vector<Column> kColumns = {
      {"status", 0.12F}, {"node", 0.15F},   {"operator", 0.14F}, {"what changed", 0.23F},
      {"type", 0.12F},   {"module", 0.15F}, {"phase", 0.09F}};
  return kColumns;
}

void TablePane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "table");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const Comparison& comparison = graph->comparison();
  const bool all = comparison.changes().empty() || ui.model.hops() == SceneView::kAllHops;
  const std::string key =
      fmt::format("{} {} {} {} {}", comparison.id(), all, sort_, down_, ui.model.filter());
  const std::vector<SceneNodeId>* rows =
      rows_.Get(ui.model.workers(), key,
                [shared = graph->shared_comparison(), all, filter = ui.model.filter(), sort = sort_,
                 down = down_] { return RowsOf(*shared, all, filter, sort, down); });
  const float height = ui.px(24);
  Head(ui, {area.x, area.y, area.width, height});
  UiPanel panel(ui, "rows", {area.x, area.y + height, area.width, area.height - height},
                theme.surface);
  if (rows == nullptr) return;
  if (rows->empty()) {
    const Area at = panel.Next(ui.px(40));
    ui.TextIn(
        {at.x + ui.px(12), at.y, at.width, at.height},
        fmt::format("No {}node matches “{}”.", all ? "" : "changed ", Visible(ui.model.filter())),
        ui.font(Face::kSans, 12), theme.ink_2);
    return;
  }
  const SceneNodeId selected = ui.model.selected();
  if (selected != shown_) {
    shown_ = selected;
    const auto at = std::ranges::find(*rows, selected);
    if (at != rows->end()) {
      const float y = static_cast<float>(at - rows->begin()) * height;
      if (y < ImGui::GetScrollY() || y + height > ImGui::GetScrollY() + ImGui::GetWindowHeight())
        ImGui::SetScrollY(std::max(0.0F, y - ImGui::GetWindowHeight() / 2));
    }
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows->size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      Row(ui, panel.Next(height), area.right() - ui.px(22), (*rows)[static_cast<size_t>(i)]);
  }
}

void TablePane::Head(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.bg);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  float x = area.x + ui.px(12);
  const float width = area.width - ui.px(34);  // without the scroll bar
  for (size_t i = 0; i < Columns().size(); ++i) {
    const Column& column = Columns()[i];
    const Area cell = {x, area.y, width * column.share - ui.px(8), area.height};
    const int index = static_cast<int>(i);
    const std::string title =
        std::string(column.title) + (sort_ == index ? (down_ ? " ↓" : " ↑") : "");
    const Touch touch =
        ui.Press(std::string("sort:") + column.title, "header", title, cell, sort_ == index);
    ui.TextIn(cell, title, ui.font(Face::kBold, 11), touch.hovered ? theme.ink : theme.ink_2);
    if (touch.clicked) {
      // A click sorts by the column, the next one backwards, the third not at all.
      if (sort_ != index) {
        sort_ = index;
        down_ = false;
      } else if (!down_) {
        down_ = true;
      } else {
        sort_ = -1;
        down_ = false;
      }
    }
    x += width * column.share;
  }
}

void TablePane::Row(Ui& ui, const Area& area, float right, SceneNodeId node) const {
  const Theme& theme = *ui.theme;
  const Comparison& c = *ui.model.comparison();
  const bool selected = node == ui.model.selected();
  const Touch touch =
      ui.Press("row:" + c.NameOf(node), "row",
               fmt::format("{} {}", CellOf(c, node, 0), CellOf(c, node, 3)), area, selected);
  if (selected || touch.hovered) ui.Fill(area, selected ? theme.accent_fill : theme.well);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  float x = area.x + ui.px(12);
  const float width = right - x;
  for (size_t i = 0; i < Columns().size(); ++i) {
    const Area cell = {x, area.y, width * Columns()[i].share - ui.px(8), area.height};
    const bool mono = i == 1 || i == 3 || i == 4;
    ui.TextIn(cell, CellOf(c, node, static_cast<int>(i)),
              ui.font(i == 0 ? Face::kBold
                      : mono ? Face::kMono
                             : Face::kSans,
                      11),
              i == 0             ? theme.TextOf(c.StatusOf(node))
              : i == 1 || i == 2 ? theme.ink
                                 : theme.ink_2);
    x += width * Columns()[i].share;
  }
  if (touch.clicked) ui.model.Reveal(node);
}

}  // namespace strata::viewer

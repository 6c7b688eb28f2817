#include "viewer/panes/text_pane.h"

#include <algorithm>

#include <fmt/format.h>

#include "scene/words.h"

namespace strata::viewer {

void TextPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "text");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const std::string key = fmt::format("{} {}", graph->comparison().id(), context_);
  const std::vector<TextRow>* rows =
      rows_.Get(ui.model.workers(), key, [shared = graph->shared_comparison(), context = context_] {
        return MakeTextDiff(*shared, context);
      });
  UiPanel panel(ui, "lines", area, theme.surface);
  if (rows == nullptr) return;
  if (rows->empty()) {
    const Area at = panel.Next(ui.px(40));
    ui.TextIn({at.x + ui.px(12), at.y, at.width, at.height},
              "No line differs; the table has differences of types and source locations.",
              ui.font(Face::kSans, 12), theme.ink_2);
    return;
  }
  const float height = ui.px(18);
  const SceneNodeId selected = ui.model.selected();
  if (selected != shown_) {
    shown_ = selected;
    const auto at = std::ranges::find(*rows, selected, &TextRow::node);
    if (selected.valid() && at != rows->end())
      ImGui::SetScrollY(std::max(
          0.0F, static_cast<float>(at - rows->begin()) * height - ImGui::GetWindowHeight() / 3));
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows->size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const TextRow& row = (*rows)[static_cast<size_t>(i)];
      const Area at = panel.Next(height);
      if (row.kind != TextRow::Kind::kFold) {
        Row(ui, at, row);
        continue;
      }
      const std::string words = fmt::format("… {}", Plural(row.folded, "unchanged line"));
      const Touch touch = ui.Press(fmt::format("fold:{}", i), "fold", words, at);
      ui.Fill(at, touch.hovered ? theme.well_2 : theme.fold);
      ui.TextIn({at.x + ui.px(108), at.y, at.width, at.height}, words, ui.font(Face::kSans, 11),
                theme.ink_3);
      if (touch.clicked) context_ = 1'000'000;
    }
  }
}

void TextPane::Row(Ui& ui, const Area& area, const TextRow& row) const {
  const Theme& theme = *ui.theme;
  const bool added = row.kind == TextRow::Kind::kAdded;
  const bool removed = row.kind == TextRow::Kind::kRemoved;
  const Theme::StatusColors* colors = added ? &theme.added : removed ? &theme.removed : nullptr;
  const std::string name = fmt::format("{}:{}",
                                       added     ? "added"
                                       : removed ? "removed"
                                                 : "line",
                                       added || !removed ? row.new_line : row.old_line);
  const bool selected = row.node == ui.model.selected();
  const Touch touch = ui.Press(name, "line", row.text, area, selected);
  if (colors != nullptr) ui.Fill(area, colors->fill);
  if (selected) ui.Fill({area.x, area.y, ui.px(3), area.height}, theme.accent);
  if (touch.hovered && colors == nullptr) ui.Fill(area, theme.well);
  const Font mono = ui.font(Face::kMono, 11);
  if (row.old_line > 0)
    ui.TextRight({area.x + ui.px(4), area.y, ui.px(40), area.height},
                 fmt::format("{}", row.old_line), mono, theme.ink_3);
  if (row.new_line > 0)
    ui.TextRight({area.x + ui.px(46), area.y, ui.px(40), area.height},
                 fmt::format("{}", row.new_line), mono, theme.ink_3);
  if (colors != nullptr)
    ui.TextIn({area.x + ui.px(94), area.y, ui.px(12), area.height}, added ? "+" : "−",
              ui.font(Face::kBold, 11), colors->text);
  const float left = area.x + ui.px(108), room = area.right() - ui.px(12) - left;
  if (colors != nullptr && !row.other.empty()) {
    // Marks behind the words; the font is monospaced, but not for every character.
    for (const auto& [begin, end] : DifferingWords(row.text, row.other)) {
      const float x = left + mono.WidthOf(std::string_view(row.text).substr(0, begin));
      const float width = mono.WidthOf(std::string_view(row.text).substr(begin, end - begin));
      if (x > area.right() - ui.px(12)) break;
      const Area mark = {x, area.y + ui.px(2), std::min(width, area.right() - ui.px(12) - x),
                         area.height - ui.px(4)};
      ui.Fill(mark, (colors->line & 0xFFFFFF) | 0x38000000, 2);
    }
  }
  ui.TextIn({left, area.y, room, area.height}, row.text, mono, theme.ink);
  if (touch.hovered && mono.WidthOf(row.text) > room) ui.Tip(row.text);
  if (touch.clicked) ui.model.Reveal(row.node);
}

}  // namespace strata::viewer

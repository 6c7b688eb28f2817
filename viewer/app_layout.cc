#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <imgui.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/app.h"

namespace strata::viewer {
namespace {

constexpr float kTop = 36, kStatus = 24, kLeft = 284, kRight = 372, kPassBar = 40, kStrip = 32;
constexpr float kBottom = 246, kLeastSide = 160, kLeastCenter = 420, kLeastBottom = 96;

}  // namespace

void App::Draw() {
  const ImGuiIO& io = ImGui::GetIO();
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(io.DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("##strata", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar();
  const float top = ui_.px(kTop), status = ui_.px(kStatus);
  const Area whole = {0, 0, io.DisplaySize.x, io.DisplaySize.y};
  top_bar_.Draw(ui_, {0, 0, whole.width, top});
  status_bar_.Draw(ui_, {0, whole.height - status, whole.width, status});
  const Area middle = {0, top, whole.width, whole.height - top - status};
  const bool shows = model_.has_contents() || model_.comparison() != nullptr;
  if (shows || model_.control() != nullptr) {
    DrawDocument(middle);
  } else {
    start_pane_.Draw(ui_, middle, settings_.recent);
  }
  ImGui::End();
  palette_.Draw(ui_, whole, settings_.recent, [this](const std::string& path) {
    if (const Status written = Export(path); !written)
      model_.Say(VisibleLines(written.error().message()));
  });
}

float App::Splitter(std::string_view name, const Area& line) {
  const bool vertical = line.width == 0;
  const float grip = ui_.px(6);
  const Area edge = vertical ? Area{std::round(line.x - grip / 2), line.y, grip, line.height}
                             : Area{line.x, std::round(line.y - grip / 2), line.width, grip};
  UiPanel panel(ui_, name, edge, 0, false);
  const Touch touch = ui_.Press(name, "splitter", "", edge);
  if (!touch.hovered && !touch.held) return 0;
  ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
  const float half = ui_.px(1);
  ui_.Fill(vertical ? Area{edge.x + edge.width / 2 - half, edge.y, 2 * half, edge.height}
                    : Area{edge.x, edge.y + edge.height / 2 - half, edge.width, 2 * half},
           ui_.theme->rule_2);
  if (!touch.held) return 0;
  const ImVec2 delta = ImGui::GetIO().MouseDelta;
  return (vertical ? delta.x : delta.y) / ui_.fonts.scale();
}

void App::DrawDocument(const Area& area) {
  const bool lists = model_.has_contents() && !settings_.hide_left;
  const bool narrow = area.width < ui_.px(1400);
  const float most = std::max(kLeastSide, area.width / ui_.fonts.scale() * 0.4F);
  const auto side = [&](float wanted, float usual) {
    return std::round(ui_.px(std::clamp(wanted > 0 ? wanted : usual, kLeastSide, most)));
  };
  float left = lists ? side(settings_.left, narrow ? kLeft - 36 : kLeft) : 0;
  float right = settings_.hide_right ? 0 : side(settings_.right, narrow ? kRight - 72 : kRight);
  // In a small window the panes at the sides give way, each as much as it can.
  const float over = left + right + ui_.px(kLeastCenter) - area.width;
  const float from_left = std::max(0.0F, left - ui_.px(kLeastSide));
  const float from_right = std::max(0.0F, right - ui_.px(kLeastSide));
  if (over > 0 && from_left + from_right > 0) {
    const float share = std::min(1.0F, over / (from_left + from_right));
    left = std::round(left - share * from_left);
    right = std::round(right - share * from_right);
  }
  const Area center = {area.x + left, area.y, area.width - left - right, area.height};
  if (lists) DrawLeft({area.x, area.y, left, area.height});
  DrawCenter(center);
  if (right > 0) {
    node_pane_.Draw(ui_, {area.right() - right, area.y, right, area.height});
    ui_.Fill({area.right() - right, area.y, 1, area.height}, ui_.theme->rule);
  }
  // Splitters come last: they lie above the panes that they divide.
  const float unit = ui_.fonts.scale();
  if (lists) {
    const float moved = Splitter("splitter:left", {left, area.y, 0, area.height});
    if (moved != 0) settings_.left = std::clamp(left / unit + moved, kLeastSide, most);
  }
  if (right > 0) {
    const float moved = Splitter("splitter:right", {center.right(), area.y, 0, area.height});
    if (moved != 0) settings_.right = std::clamp(right / unit - moved, kLeastSide, most);
  }
}

void App::DrawLeft(const Area& area) {
  const float unit = ui_.fonts.scale(), high = area.height / unit;
  const float modules =
      ui_.px(std::round(std::clamp(settings_.modules > 0 ? settings_.modules : high * 0.45F, 80.0F,
                                   std::max(80.0F, high - 160))));
  DrawLists({area.x, area.y, area.width, area.height - modules});
  modules_pane_.Draw(ui_, {area.x, area.bottom() - modules, area.width, modules});
  ui_.Fill({area.right() - 1, area.y, 1, area.height}, ui_.theme->rule);
  const float moved =
      Splitter("splitter:modules", {area.x, area.bottom() - modules, area.width, 0});
  if (moved != 0) settings_.modules = std::clamp(modules / unit - moved, 80.0F, high);
}

void App::DrawLists(const Area& area) {
  const Theme& theme = *ui_.theme;
  const float tabs = ui_.px(kStrip);
  ui_.Fill({area.x, area.y, area.width, tabs}, theme.surface);
  ui_.Fill({area.x, area.y + tabs - 1, area.width, 1}, theme.rule);
  const std::pair<LeftTab, const char*> all[] = {{LeftTab::kPasses, "Passes"},
                                                 {LeftTab::kSearch, "Search"},
                                                 {LeftTab::kBookmarks, "Bookmarks"}};
  float x = area.x + ui_.px(2);
  const auto count_of = [&](LeftTab tab) -> std::string {
    if (tab == LeftTab::kPasses) return std::to_string(model_.contents().subjects.size());
    return tab == LeftTab::kBookmarks && !settings_.bookmarks.empty()
               ? std::to_string(settings_.bookmarks.size())
               : "";
  };
  float whole = ui_.px(4);
  for (const auto& [tab, label] : all)
    whole += TabWidth(label, count_of(tab));
  for (const auto& [tab, label] : all) {
    // Where not all counts have room, that of the current tab is shown.
    const std::string count = whole <= area.width || tab == left_tab_ ? count_of(tab) : "";
    const float width = TabWidth(label, count);
    if (ui_.Tab(std::string("left:") + label, label, count, {x, area.y, width, tabs},
                left_tab_ == tab))
      left_tab_ = tab;
    x += width;
  }
  const Area content = {area.x, area.y + tabs, area.width, area.height - tabs};
  switch (left_tab_) {
    case LeftTab::kPasses:
      passes_pane_.Draw(ui_, content);
      break;
    case LeftTab::kSearch:
      search_pane_.Draw(ui_, content);
      break;
    case LeftTab::kBookmarks:
      DrawBookmarks(content);
      break;
  }
}

/// What a bookmark leads to: the node first, by which bookmarks of a pass differ.
std::string App::BookmarkText(const std::string& full) const {
  const auto [file, link] = SplitLink(full);
  const bool here = model_.document() != nullptr && file == model_.document()->file();
  const SubjectId found = here ? model_.contents().Find(link.ref) : SubjectId();
  std::string where = link.ref;
  if (found.valid()) {
    const Subject& subject = model_.contents().subjects[found];
    const std::string place = model_.contents().PlaceOf(subject);
    where = subject.Title() + (place.empty() ? "" : ", " + place);
  } else if (!here) {
    where = std::filesystem::path(file).filename().string() + (where.empty() ? "" : " " + where);
  }
  return Visible(link.node.empty() ? where : fmt::format("{} in {}", link.node, where));
}

void App::DrawBookmarks(const Area& area) {
  const UiScope scope(ui_, "bookmarks");
  const Theme& theme = *ui_.theme;
  UiPanel panel(ui_, "list", area, theme.surface);
  const auto put = [&](const Area& at, const std::string& words, Color color) {
    ui_.TextIn({at.x + ui_.px(12), at.y, at.width - ui_.px(24), at.height}, words,
               ui_.font(Face::kSans, 12), color);
  };
  if (settings_.bookmarks.empty()) {
    put(panel.Next(ui_.px(32)), "No bookmarks. Press m and a key to set one.", theme.ink_2);
    return;
  }
  std::string go, drop;
  for (const auto& [key, full] : settings_.bookmarks) {
    const Area at = panel.Next(ui_.px(26));
    const std::string words = BookmarkText(full);
    const Area cross = {at.right() - ui_.px(30), at.y, ui_.px(24), at.height};
    const Touch remove = ui_.Press("remove:" + key, "button", "remove", cross);
    const Touch touch = ui_.Press(key, "row", words, at);
    if (touch.hovered || remove.hovered) ui_.Fill(at, theme.well);
    put(at, key, theme.ink);
    ui_.TextIn({at.x + ui_.px(40), at.y, at.width - ui_.px(76), at.height}, words,
               ui_.font(Face::kSans, 12), theme.ink_2);
    if (touch.hovered || remove.hovered)
      ui_.TextIn({cross.x + ui_.px(8), cross.y, cross.width, cross.height}, "×",
                 ui_.font(Face::kSans, 13), remove.hovered ? theme.ink : theme.ink_3);
    if (touch.hovered) ui_.Tip(Visible(full));
    if (remove.clicked) drop = key;
    if (touch.clicked) go = key;
  }
  if (!drop.empty()) {
    settings_.bookmarks.erase(drop);
  } else if (!go.empty()) {
    GoToBookmark(go);
  }
}

float App::TabWidth(std::string_view label, std::string_view count) const {
  return ui_.font(Face::kBold, 12).WidthOf(label) + ui_.font(Face::kSans, 12).WidthOf(count) +
         ui_.px(count.empty() ? 20 : 26);
}

void App::DrawCenter(const Area& center) {
  const float bar = ui_.px(kPassBar);
  pass_bar_.Draw(ui_, {center.x, center.y, center.width, bar});
  const float most = std::max(kLeastBottom, (center.height - bar) / ui_.fonts.scale() * 0.7F);
  const float wanted = settings_.bottom > 0 ? settings_.bottom : std::min(kBottom, most * 0.45F);
  const float bottom = settings_.hide_bottom ? 0
                       : model_.tab == viewer::Tab::kNone
                           ? ui_.px(kStrip)
                           : std::round(ui_.px(std::clamp(wanted, kLeastBottom, most)));
  graph_pane_.Draw(ui_, {center.x, center.y + bar, center.width, center.height - bar - bottom});
  if (bottom > 0) DrawBottom({center.x, center.bottom() - bottom, center.width, bottom});
  if (bottom <= ui_.px(kStrip)) return;
  const float moved =
      Splitter("splitter:bottom", {center.x, center.bottom() - bottom, center.width, 0});
  if (moved != 0)
    settings_.bottom = std::clamp(bottom / ui_.fonts.scale() - moved, kLeastBottom, most);
}

void App::DrawTabs(const Area& area) {
  const UiScope scope(ui_, "tabs");
  const Theme& theme = *ui_.theme;
  ui_.Fill(area, theme.surface);
  ui_.Fill({area.x, area.y, area.width, 1}, theme.rule);
  const ChangeList* changes = patterns_pane_.Changes(ui_);
  const Comparison* c = model_.comparison();
  const size_t nodes = c == nullptr           ? 0
                       : c->changes().empty() ? c->nodes().size()
                                              : c->changes().size();
  const std::tuple<viewer::Tab, const char*, size_t> all[] = {
      {viewer::Tab::kTable, "Table", nodes},
      {viewer::Tab::kText, "Text", 0},
      {viewer::Tab::kPatterns, "Patterns", changes != nullptr ? changes->patterns.size() : 0},
      {viewer::Tab::kOperators, "Operators", 0},
      {viewer::Tab::kCosts, "Costs", 0},
      {viewer::Tab::kMemory, "Memory", 0},
      {viewer::Tab::kLanes, "Lanes", 0},
      {viewer::Tab::kRanks, "Ranks", model_.has_contents() ? model_.contents().runs.size() : 0},
      {viewer::Tab::kLive, "Live", 0},
      {viewer::Tab::kLog, "Log", model_.log().size()}};
  float x = area.x + ui_.px(2);
  for (const auto& [tab, label, amount] : all) {
    const std::string count = amount > 1 ? NumberText(static_cast<int64_t>(amount)) : "";
    const float width = TabWidth(label, count);
    // A click on the current tab closes it.
    if (ui_.Tab(label, label, count, {x, area.y, width, area.height}, model_.tab == tab))
      model_.tab = model_.tab == tab ? viewer::Tab::kNone : tab;
    x += width;
  }
}

void App::DrawBottom(const Area& area) {
  const float strip = ui_.px(kStrip);
  DrawTabs({area.x, area.y, area.width, strip});
  const Area content = {area.x, area.y + strip, area.width, area.height - strip};
  switch (model_.tab) {
    case viewer::Tab::kTable:
      return table_pane_.Draw(ui_, content);
    case viewer::Tab::kText:
      return text_pane_.Draw(ui_, content);
    case viewer::Tab::kPatterns:
      return patterns_pane_.Draw(ui_, content);
    case viewer::Tab::kOperators:
      return operators_pane_.Draw(ui_, content);
    case viewer::Tab::kCosts:
      return costs_pane_.Draw(ui_, content);
    case viewer::Tab::kMemory:
      return memory_pane_.Draw(ui_, content);
    case viewer::Tab::kLanes:
      return lanes_pane_.Draw(ui_, content);
    case viewer::Tab::kRanks:
      return ranks_pane_.Draw(ui_, content);
    case viewer::Tab::kLive:
      return live_pane_.Draw(ui_, content);
    case viewer::Tab::kLog:
      return log_pane_.Draw(ui_, content);
    case viewer::Tab::kNone:
      break;
  }
}

}  // namespace strata::viewer

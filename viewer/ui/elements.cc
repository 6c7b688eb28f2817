#include "viewer/ui/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "scene/words.h"

namespace strata::viewer {
namespace {

ImVec2 Snap(float x, float y) {
  return {std::round(x), std::round(y)};
}

using StatusCount = std::pair<SceneStatus, int32_t>;

/// In the order in which they are shown.
std::array<StatusCount, 5> StatusCounts(const SceneCounts& counts) {
  return {{{SceneStatus::kAdded, counts.added},
           {SceneStatus::kRemoved, counts.removed},
           {SceneStatus::kChanged, counts.changed},
           {SceneStatus::kMoved, counts.moved},
           {SceneStatus::kDerived, counts.derived}}};
}

std::string CountText(const StatusCount& count) {
  return std::string(SignOf(count.first)) + NumberText(count.second);
}

constexpr float kCountGap = 8;

/// Without what is scrolled out of its pane, so that a click on its middle meets it. What is not
/// shown at all stays as it is.
Area ShownPart(const Area& area, const ImDrawList& draw) {
  const ImVec2 low = draw.GetClipRectMin(), high = draw.GetClipRectMax();
  const float x = std::max(area.x, low.x), y = std::max(area.y, low.y);
  const float right = std::min(area.right(), high.x), bottom = std::min(area.bottom(), high.y);
  return x < right && y < bottom ? Area{x, y, right - x, bottom - y} : area;
}

}  // namespace

void Ui::Register(std::string_view name, std::string_view role, std::string_view text,
                  const Area& area, bool selected, bool enabled) {
  if (!tree.recording()) return;
  UiElement element;
  element.name = Path(name);
  element.role = role;
  element.text = text;
  const Area shown = ShownPart(area, draw());
  element.x = shown.x;
  element.y = shown.y;
  element.width = shown.width;
  element.height = shown.height;
  element.selected = selected;
  element.enabled = enabled;
  tree.Add(std::move(element));
}

float Ui::Text(float x, float y, std::string_view text, const Font& font, Color color,
               float width) const {
  const std::string cut = width > 0 ? font.Cut(text, width) : std::string();
  const std::string_view shown = width > 0 ? std::string_view(cut) : text;
  if (shown.empty()) return 0;
  draw().AddText(font.font, font.size, Snap(x, y), color, shown.data(),
                 shown.data() + shown.size());
  return font.WidthOf(shown);
}

float Ui::TextIn(const Area& area, std::string_view text, const Font& font, Color color) const {
  return Text(area.x, area.y + (area.height - font.size) / 2, text, font, color, area.width);
}

float Ui::TextRight(const Area& area, std::string_view text, const Font& font, Color color) const {
  const std::string shown = font.Cut(text, area.width);
  const float width = font.WidthOf(shown);
  Text(area.right() - width, area.y + (area.height - font.size) / 2, shown, font, color);
  return width;
}

float Ui::Wrapped(const Area& area, std::string_view text, const Font& font, Color color) const {
  const float line_height = std::round(font.size * 1.4F);
  float y = area.y;
  std::string line;
  const auto flush = [&] {
    Text(area.x, y + (line_height - font.size) / 2, line, font, color, area.width);
    y += line_height;
    line.clear();
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && font.WidthOf(longer) > area.width) {
      flush();
      line = word;
    } else {
      line = longer;
    }
    begin = end + 1;
  }
  if (!line.empty()) flush();
  return y - area.y;
}

void Ui::Fill(const Area& area, Color color, float radius) const {
  draw().AddRectFilled(area.min(), area.max(), color, px(radius));
}

void Ui::Frame(const Area& area, Color color, float radius, float line) const {
  const float half = px(line) / 2;
  draw().AddRect({area.x + half, area.y + half}, {area.right() - half, area.bottom() - half}, color,
                 px(radius), 0, px(line));
}

Font Ui::CountFont(SceneStatus status, float pixels) const {
  return font(status == SceneStatus::kDerived ? Face::kSans : Face::kBold, pixels);
}

float Ui::CountsFrom(const SceneCounts& counts, float left, float middle, float pixels) const {
  for (const StatusCount& count : StatusCounts(counts)) {
    if (count.second == 0) continue;
    const Font f = CountFont(count.first, pixels);
    const std::string text = CountText(count);
    Text(left, middle - f.size / 2, text, f, theme->TextOf(count.first));
    left += f.WidthOf(text) + px(kCountGap);
  }
  return left;
}

float Ui::CountsWidth(const SceneCounts& counts, float pixels) const {
  float width = 0;
  for (const StatusCount& count : StatusCounts(counts)) {
    if (count.second > 0)
      width += CountFont(count.first, pixels).WidthOf(CountText(count)) + px(kCountGap);
  }
  return std::max(0.0F, width - px(kCountGap));
}

float Ui::Counts(const SceneCounts& counts, float right, float middle, float pixels) const {
  const float width = CountsWidth(counts, pixels);
  if (width == 0) return right;
  CountsFrom(counts, right - width, middle, pixels);
  return right - width - px(kCountGap);
}

Touch Ui::Press(std::string_view name, std::string_view role, std::string_view text,
                const Area& area, bool selected, bool enabled) {
  Register(name, role, text, area, selected, enabled);
  if (area.width < 1 || area.height < 1) return {};
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos(area.min());
  const std::string id = Path(name);
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::BeginDisabled(!enabled);
  Touch touch;
  touch.clicked = ImGui::InvisibleButton("##press", {area.width, area.height});
  touch.hovered = ImGui::IsItemHovered();
  touch.held = ImGui::IsItemActive();
  touch.double_clicked = touch.hovered && ImGui::IsMouseDoubleClicked(0);
  ImGui::EndDisabled();
  ImGui::PopID();
  ImGui::SetCursorScreenPos(cursor);
  return touch;
}

bool Ui::Button(std::string_view name, std::string_view label, const Area& area, bool pressed,
                std::string_view tip, bool enabled) {
  const Touch touch = Press(name, "button", label, area, pressed, enabled);
  const bool lit = pressed || touch.held;
  Fill(area, lit ? theme->accent_fill : touch.hovered ? theme->bg : theme->surface, 4);
  Frame(area, lit ? theme->accent : touch.hovered ? theme->rule_2 : theme->rule, 4);
  const Font f = font(lit ? Face::kBold : Face::kSans, 12);
  const std::string shown = f.Cut(label, area.width - px(8));
  Text(area.x + (area.width - f.WidthOf(shown)) / 2, area.y + (area.height - f.size) / 2, shown, f,
       !enabled ? theme->ink_4
       : lit    ? theme->accent
                : theme->ink_2);
  if (touch.hovered && !tip.empty()) Tip(tip);
  return touch.clicked;
}

bool Ui::Tab(std::string_view name, std::string_view label, std::string_view count,
             const Area& area, bool selected) {
  const Touch touch = Press(name, "tab", label, area, selected);
  const Font f = font(selected ? Face::kBold : Face::kSans, 12);
  const float used = Text(area.x + px(10), area.y + (area.height - f.size) / 2, label, f,
                          selected || touch.hovered ? theme->ink : theme->ink_2);
  if (!count.empty()) {
    const Font quiet = font(Face::kSans, 12);
    Text(area.x + px(15) + used, area.y + (area.height - quiet.size) / 2, count, quiet,
         theme->ink_3);
  }
  if (selected) Fill({area.x, area.bottom() - px(2), area.width, px(2)}, theme->accent);
  return touch.clicked;
}

bool Ui::Checkbox(std::string_view name, std::string_view label, const Area& area, bool checked) {
  const Touch touch = Press(name, "checkbox", label, area, checked);
  const float size = px(14);
  const Area box = {area.x, std::round(area.y + (area.height - size) / 2), size, size};
  Fill(box, checked ? theme->accent : theme->surface, 3);
  Frame(box, checked ? theme->accent : touch.hovered ? theme->ink_2 : theme->rule_2, 3);
  if (checked) {
    const ImVec2 points[] = {{box.x + px(3), box.y + px(7)},
                             {box.x + px(6), box.y + px(10)},
                             {box.x + px(11), box.y + px(4)}};
    draw().AddPolyline(points, 3, theme->badge_ink, 0, px(2));
  }
  TextIn({box.right() + px(6), area.y, area.right() - box.right() - px(6), area.height}, label,
         font(Face::kSans, 12), theme->ink);
  return touch.clicked;
}

bool Ui::Input(std::string_view name, std::string_view hint, const Area& area, std::string& text,
               bool focus, std::optional<std::string>* completed) {
  Register(name, "input", text, area);
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos(area.min());
  ImGui::SetNextItemWidth(area.width);
  const Font f = font(Face::kSans, 12);
  ImGui::PushFont(f.font);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(10), (area.height - f.size) / 2});
  if (focus) ImGui::SetKeyboardFocusHere();
  const std::string id = "##" + Path(name), hint_text(hint);
  // The field has a copy of its own while it is being written.
  const ImGuiInputTextCallback replace = [](ImGuiInputTextCallbackData* data) {
    auto& written = *static_cast<std::optional<std::string>*>(data->UserData);
    if (!written) return 0;
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, written->data(), written->data() + written->size());
    data->ClearSelection();
    written.reset();
    return 0;
  };
  const bool changed =
      ImGui::InputTextWithHint(id.c_str(), hint_text.c_str(), &text,
                               ImGuiInputTextFlags_AutoSelectAll |
                                   (completed != nullptr ? ImGuiInputTextFlags_CallbackAlways : 0),
                               completed != nullptr ? replace : nullptr, completed);
  if (ImGui::IsItemActive()) Frame(area, theme->accent, 3, 2);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SetCursorScreenPos(cursor);
  return changed;
}

void Ui::Sentence(const Area& area, std::string_view name, std::string_view words) {
  Wrapped({area.x + px(12), area.y + px(12), area.width - px(24), area.height}, words,
          font(Face::kSans, 12), theme->ink_2);
  Register(name, "text", words, {area.x, area.y, area.width, px(40)});
}

void Ui::Progress(std::string_view name, const Area& area, int64_t done, int64_t all) {
  const double share =
      all > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(all), 0.0, 1.0) : 0;
  const float radius = area.height / 2 / fonts.scale();
  Fill(area, theme->well_2, radius);
  const float width = std::max(area.height, area.width * static_cast<float>(share));
  if (share > 0) Fill({area.x, area.y, width, area.height}, theme->tick_2, radius);
  Register(name, "progress", fmt::format("{:.0f}", share * 100), area);
}

bool Ui::Choice(std::string_view name, const Area& area, const std::vector<std::string>& choices,
                int& chosen) {
  if (choices.empty()) return false;
  const std::string& label = choices[static_cast<size_t>(chosen)];
  const Touch touch = Press(name, "choice", label, area);
  Fill(area, theme->surface, 4);
  Frame(area, touch.hovered ? theme->rule_2 : theme->rule, 4);
  const Font f = font(Face::kBold, 12);
  TextIn({area.x + px(8), area.y, area.width - px(24), area.height}, label, f, theme->ink);
  const float x = area.right() - px(12), y = area.y + area.height / 2;
  draw().AddTriangleFilled({x - px(4), y - px(2)}, {x + px(4), y - px(2)}, {x, y + px(3)},
                           theme->ink_2);
  const std::string id = Path(name) + "##choices";
  if (touch.clicked) ImGui::OpenPopup(id.c_str());
  bool changed = false;
  const float row = px(24);
  // Below, or as low as the window shows all of it.
  const float height =
      row * static_cast<float>(choices.size()) + 2 * ImGui::GetStyle().WindowPadding.y;
  const float lowest = ImGui::GetIO().DisplaySize.y - height;
  ImGui::SetNextWindowPos({area.x, std::max(0.0F, std::min(area.bottom() + px(2), lowest))});
  if (ImGui::BeginPopup(id.c_str(), ImGuiWindowFlags_NoMove)) {
    for (size_t i = 0; i < choices.size(); ++i) {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const Area item = {at.x, at.y, std::max(area.width, f.WidthOf(choices[i]) + px(24)), row};
      const std::string item_name = std::string(name) + ":" + choices[i];
      const bool current = static_cast<int>(i) == chosen;
      const Touch on = Press(item_name, "option", choices[i], item, current);
      if (current || on.hovered) Fill(item, current ? theme->accent_fill : theme->bg, 3);
      TextIn({item.x + px(8), item.y, item.width - px(8), row}, choices[i],
             font(current ? Face::kBold : Face::kSans, 12), theme->ink);
      ImGui::Dummy({item.width, row});
      if (!on.clicked) continue;
      changed = !current;
      chosen = static_cast<int>(i);
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  return changed;
}

void Ui::Tip(std::string_view text) const {
  ImGui::PushFont(font(Face::kSans, 12).font);
  // Panels have no padding and no border, and their style is pushed while they are drawn.
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(10), px(8)});
  ImGui::PushStyleColor(ImGuiCol_Border, theme->rule_2);
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(420));
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

UiScope::UiScope(Ui& ui, std::string_view name) : ui_(ui), size_(ui.scope_.size()) {
  ui.scope_ += name;
  ui.scope_ += '/';
}

UiScope::~UiScope() {
  ui_.scope_.resize(size_);
}

UiPanel::UiPanel(Ui& ui, std::string_view name, const Area& area, Color color, bool scrolls) {
  ImGui::SetCursorScreenPos(area.min());
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, color);
  const ImGuiWindowFlags flags =
      scrolls ? ImGuiWindowFlags_None
              : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
  const std::string id = ui.Path(name) + "##panel";
  ImGui::BeginChild(id.c_str(), {area.width, area.height}, false, flags);
  width_ = ImGui::GetContentRegionAvail().x;
}

UiPanel::~UiPanel() {
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

Area UiPanel::Next(float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({width_, height});
  return {at.x, at.y, width_, height};
}

void UiPanel::Skip(float height) {
  ImGui::Dummy({width_, height});
}

bool UiPanel::Shows(const Area& area) const {
  return ImGui::IsRectVisible(area.min(), area.max());
}

bool UiPanel::ShowsWhole(const Area& area) const {
  const float top = ImGui::GetWindowPos().y;
  return area.y >= top && area.bottom() <= top + ImGui::GetWindowHeight();
}

}  // namespace strata::viewer

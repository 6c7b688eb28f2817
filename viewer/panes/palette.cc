#include "viewer/panes/palette.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr float kRow = 26;

/// The name of a kind in the UI tree, and what stands in its empty field.
std::pair<const char*, const char*> WordsOf(Palette::Kind kind) {
  switch (kind) {
    case Palette::Kind::kKeys:
      return {"keys", ""};
    case Palette::Kind::kOpen:
      return {"open", "A trace, a log, a folder of logs or an FX text"};
    case Palette::Kind::kExport:
      return {"export", "A file name"};
    case Palette::Kind::kPasses:
      return {"run-passes", "Passes, such as dce,canonicalize"};
    case Palette::Kind::kCompare:
      return {"compare", "Compare this graph with: FILE, or FILE#graph=step,pass=3"};
    case Palette::Kind::kDemo:
      return {"demo", "Where the demo goes: a file name"};
    case Palette::Kind::kCommands:
    case Palette::Kind::kClosed:
      break;
  }
  return {"palette", "A command, a pass, a node, the number of a line"};
}

}  // namespace

void Palette::Open(Kind kind, const std::string& text) {
  kind_ = kind;
  text_ = text;
  chosen_ = 0;
  focus_ = true;
  choose_ = complete_ = false;
  completed_.reset();
  if (kind == Kind::kCompare) completed_ = text;  // the user writes on behind it
}

void Palette::Draw(Ui& ui, const Area& window, const std::vector<std::string>& recent,
                   const std::function<void(const std::string& path)>& export_to) {
  if (!is_open()) return;
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, WordsOf(kind_).first);
  ImGui::SetNextWindowPos(window.min());
  ImGui::SetNextWindowSize({window.width, window.height});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, theme.scrim);
  ImGui::SetNextWindowFocus();
  ImGui::Begin("##palette", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNavInputs);
  const float width = std::min(window.width - ui.px(40), ui.px(kind_ == Kind::kKeys ? 900 : 620));
  const float most = std::min(window.height - ui.px(80), ui.px(kind_ == Kind::kKeys ? 660 : 460));
  // As high as its rows, those of the frame before; none is cut.
  const float head = ui.px(60), row = ui.px(kRow);
  const float rows =
      std::min(std::floor((most - head) / row), static_cast<float>(std::max<size_t>(1, rows_)));
  const float height = kind_ == Kind::kKeys ? most : head + rows * row;
  const Area box = {std::round(window.x + (window.width - width) / 2), window.y + ui.px(56), width,
                    height};
  ui.Fill(box, theme.surface, 6);
  ui.Frame(box, theme.rule_2, 6);
  if (kind_ == Kind::kKeys) {
    DrawKeys(ui, box);
  } else {
    DrawField(ui, box);
    DrawItems(ui, box, ItemsOf(ui, recent, export_to));
  }
  // A click beside the box closes it.
  const ImVec2 at = ImGui::GetIO().MousePos;
  if (ImGui::IsMouseClicked(0) &&
      (at.x < box.x || at.x > box.right() || at.y < box.y || at.y > box.bottom()))
    Close();
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

void Palette::DrawField(Ui& ui, const Area& box) {
  const Area field = {box.x + ui.px(12), box.y + ui.px(12), box.width - ui.px(24), ui.px(32)};
  if (ui.Input("field", WordsOf(kind_).second, field, text_, std::exchange(focus_, false),
               &completed_))
    chosen_ = 0;
}

void Palette::DrawItem(Ui& ui, const Area& at, const Item& item, bool lit) const {
  const Theme& theme = *ui.theme;
  if (lit) ui.Fill(at, theme.well);
  const bool explains = item.completes.has_value();
  // What a pass does begins where all begin; keys end where all end.
  const float left = at.x + ui.px(16), right = at.right() - ui.px(16);
  if (explains) {
    const float column = left + ui.px(190);
    ui.TextIn({left, at.y, column - left - ui.px(8), at.height}, item.words,
              ui.font(Face::kMono, 12), theme.ink);
    ui.TextIn({column, at.y, right - column, at.height}, item.key, ui.font(Face::kSans, 12),
              theme.ink_2);
    return;
  }
  const float key =
      ui.TextRight({at.x + at.width / 2, at.y, right - at.x - at.width / 2, at.height}, item.key,
                   ui.font(Face::kMono, 11), theme.ink_3);
  ui.TextIn({left, at.y, at.width - key - ui.px(48), at.height}, item.words,
            ui.font(Face::kSans, 13), theme.ink);
}

void Palette::Take(const Item& item) {
  if (item.completes) {
    completed_ = item.completes;
    focus_ = true;
    chosen_ = 0;
    return;
  }
  Close();
  item.run();
}

void Palette::DrawItems(Ui& ui, const Area& box, const std::vector<Item>& items) {
  const Theme& theme = *ui.theme;
  chosen_ = std::clamp(chosen_, 0, std::max(0, static_cast<int>(items.size()) - 1));
  const Item* taken = nullptr;
  if (std::exchange(choose_, false) && !items.empty()) taken = &items[static_cast<size_t>(chosen_)];
  if (std::exchange(complete_, false)) {
    const auto from =
        std::ranges::find_if(items.begin() + (items.empty() ? 0 : chosen_), items.end(),
                             [](const Item& item) { return item.completes.has_value(); });
    if (from != items.end()) taken = &*from;
  }
  {
    UiPanel panel(
        ui, "items",
        {box.x + ui.px(2), box.y + ui.px(52), box.width - ui.px(4), box.height - ui.px(60)},
        theme.surface);
    const float height = ui.px(kRow);
    rows_ = items.size();
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(items.size()), height);
    clipper.ForceDisplayRangeByIndices(chosen_,
                                       std::min(chosen_ + 1, static_cast<int>(items.size())));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const Item& item = items[static_cast<size_t>(i)];
        const Area at = panel.Next(height);
        const bool here = i == chosen_;
        const Touch touch = ui.Press("item:" + item.words, "option", item.words, at, here);
        if (here) ui.Fill(at, theme.accent_fill);
        if (here && !panel.ShowsWhole(at)) ImGui::SetScrollHereY(0.5F);
        DrawItem(ui, at, item, touch.hovered && !here);
        if (touch.clicked) taken = &item;
      }
    }
    if (items.empty()) DrawNothing(ui, panel.Next(height));
  }
  if (taken != nullptr) Take(*taken);
}

void Palette::DrawNothing(Ui& ui, const Area& at) const {
  const bool refused = kind_ == Kind::kPasses && !refused_.empty();
  const std::string words = refused ? Visible(refused_.substr(0, refused_.find('\n')))
                                    : fmt::format("Nothing matches “{}”", Visible(text_));
  const Area area = {at.x + ui.px(16), at.y, at.width - ui.px(32), at.height};
  ui.TextIn(area, words, ui.font(Face::kSans, 13),
            refused ? ui.theme->removed.text : ui.theme->ink_2);
  ui.Register("nothing", "text", words, area);
}

void Palette::DrawKeys(Ui& ui, const Area& box) const {
  const Theme& theme = *ui.theme;
  ui.Text(box.x + ui.px(20), box.y + ui.px(14), "Keys", ui.font(Face::kBold, 15), theme.ink);
  std::vector<const Command*> bound;
  for (const Command& command : ui.commands.all()) {
    if (!command.keys.empty()) bound.push_back(&command);
  }
  UiPanel panel(ui, "list",
                {box.x + ui.px(2), box.y + ui.px(44), box.width - ui.px(4), box.height - ui.px(52)},
                theme.surface);
  const size_t half = (bound.size() + 1) / 2;
  for (size_t i = 0; i < half; ++i) {
    const Area line = panel.Next(ui.px(22));
    for (size_t k = i, column = 0; k < bound.size() && column < 2; k += half, ++column) {
      const float x = line.x + ui.px(20) + static_cast<float>(column) * line.width / 2;
      ui.TextIn({x, line.y, ui.px(92), line.height}, KeysOf(*bound[k]), ui.font(Face::kMono, 11),
                theme.ink);
      const Area words = {x + ui.px(96), line.y, line.width / 2 - ui.px(124), line.height};
      ui.TextIn(words, bound[k]->words, ui.font(Face::kSans, 12), theme.ink_2);
      ui.Register(bound[k]->id, "text", KeysOf(*bound[k]), words);
    }
  }
}

}  // namespace strata::viewer

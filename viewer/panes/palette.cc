#include "viewer/panes/palette.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostItems = 200;

/// Whether the words of `text` occur in `words`, in either case and in any order.
bool Fits(std::string_view words, std::string_view text) {
  const auto lower = [](std::string_view from) {
    std::string to(from);
    std::ranges::transform(to, to.begin(), [](unsigned char c) { return std::tolower(c); });
    return to;
  };
  const std::string in = lower(words), all = lower(text);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(' ', begin), all.size());
    if (in.find(all.substr(begin, end - begin)) == std::string::npos) return false;
    begin = end + 1;
  }
  return true;
}

std::string KeysOf(const Command& command) {
  std::string keys;
  for (const std::string& key : command.keys)
    keys += (keys.empty() ? "" : "  ") + key;
  return keys;
}

}  // namespace

void Palette::Open(Kind kind) {
  kind_ = kind;
  text_.clear();
  chosen_ = 0;
  focus_ = true;
  choose_ = false;
}

std::vector<Palette::Item> Palette::Items(Ui& ui) const {
  std::vector<Item> items;
  const auto add = [&](Item item) {
    if (items.size() < kMostItems && Fits(item.words, text_)) items.push_back(std::move(item));
  };
  for (const Command& command : ui.commands.all())
    add({"Commands", command.words, KeysOf(command), [&command] { command.run(1); }});
  Model& model = ui.model;
  for (size_t i = 0; model.has_contents() && i < model.contents().subjects.size(); ++i) {
    const Subject& s = model.contents().subjects[i];
    add({"Passes and graphs", s.Title(), CountsText(s.counts),
         [&model, i] { model.Show(static_cast<int32_t>(i)); }});
  }
  const Comparison* c = model.comparison();
  for (int32_t i = 0; c != nullptr && !text_.empty() && i < c->size() && items.size() < kMostItems;
       ++i) {
    if (Fits(c->NameOf(i), text_))
      items.push_back({"Nodes", c->NameOf(i), c->LabelOf(i), [&model, i] { model.Reveal(i); }});
  }
  return items;
}

void Palette::Draw(Ui& ui, const Area& window) {
  if (!is_open()) return;
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, kind_ == Kind::kKeys ? "keys" : "palette");
  ImGui::SetNextWindowPos(window.min());
  ImGui::SetNextWindowSize({window.width, window.height});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, theme.scrim);
  ImGui::SetNextWindowFocus();
  ImGui::Begin("##palette", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNavInputs);
  const float width = std::min(window.width - ui.px(40), ui.px(kind_ == Kind::kKeys ? 900 : 620));
  const float height = std::min(window.height - ui.px(80), ui.px(kind_ == Kind::kKeys ? 660 : 460));
  const Area box = {std::round(window.x + (window.width - width) / 2), window.y + ui.px(56), width,
                    height};
  ui.Fill(box, theme.surface, 6);
  ui.Frame(box, theme.rule_2, 6);
  if (kind_ == Kind::kKeys) {
    DrawKeys(ui, box);
  } else {
    DrawCommands(ui, box);
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

void Palette::DrawCommands(Ui& ui, const Area& box) {
  const Theme& theme = *ui.theme;
  const Area field = {box.x + ui.px(12), box.y + ui.px(12), box.width - ui.px(24), ui.px(32)};
  if (ui.Input("field", "A command, a pass, a node", field, text_, std::exchange(focus_, false)))
    chosen_ = 0;
  const std::vector<Item> items = Items(ui);
  chosen_ = std::clamp(chosen_, 0, std::max(0, static_cast<int>(items.size()) - 1));
  std::function<void()> run;
  if (std::exchange(choose_, false) && !items.empty())
    run = items[static_cast<size_t>(chosen_)].run;
  {
    UiPanel panel(
        ui, "items",
        {box.x + ui.px(1), box.y + ui.px(52), box.width - ui.px(2), box.height - ui.px(60)},
        theme.surface);
    const float height = ui.px(26);
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
        if (here || touch.hovered) ui.Fill(at, here ? theme.accent_fill : theme.well);
        if (here && !panel.Shows(at)) ImGui::SetScrollHereY(0.5F);
        const float key =
            ui.TextRight({at.x + at.width / 2, at.y, at.width / 2 - ui.px(16), height}, item.key,
                         ui.font(Face::kMono, 11), theme.ink_3);
        const Font font = ui.font(Face::kSans, 13);
        ui.TextIn({at.x + ui.px(16), at.y, at.width - key - ui.px(48), height}, item.words, font,
                  theme.ink);
        if (touch.clicked) run = item.run;
      }
    }
    if (items.empty()) {
      const Area at = panel.Next(height);
      ui.TextIn({at.x + ui.px(16), at.y, at.width, height},
                fmt::format("Nothing matches “{}”", Visible(text_)), ui.font(Face::kSans, 13),
                theme.ink_2);
    }
  }
  if (!run) return;
  Close();
  run();
}

void Palette::DrawKeys(Ui& ui, const Area& box) const {
  const Theme& theme = *ui.theme;
  ui.Text(box.x + ui.px(20), box.y + ui.px(14), "Keys", ui.font(Face::kBold, 15), theme.ink);
  std::vector<const Command*> bound;
  for (const Command& command : ui.commands.all()) {
    if (!command.keys.empty()) bound.push_back(&command);
  }
  UiPanel panel(ui, "list",
                {box.x + ui.px(1), box.y + ui.px(44), box.width - ui.px(2), box.height - ui.px(52)},
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

#include "viewer/panes/palette.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

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

void Palette::Open(Kind kind, const std::string& text) {
  kind_ = kind;
  text_ = text;
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

std::vector<Palette::Item> Palette::Files(Ui& ui, const std::vector<std::string>& recent) const {
  namespace fs = std::filesystem;
  Model& model = ui.model;
  std::vector<Item> items;
  const auto add = [&](const std::string& file, std::string key) {
    items.push_back({"Files", file, std::move(key), [&model, file] { model.Open(file); }});
  };
  // What was typed comes first if it is a file, then what lies beside or below it.
  const std::string typed = text_.starts_with("~/") && std::getenv("HOME") != nullptr
                                ? std::getenv("HOME") + text_.substr(1)
                                : text_;
  std::error_code failure;
  const std::string file = typed.substr(0, typed.find('#'));
  if (!file.empty() && fs::exists(file, failure)) add(typed, "");
  for (const std::string& name : recent) {
    if (name != typed && Fits(name, text_)) add(name, "recent");
  }
  const fs::path path(typed);
  const bool is_folder = fs::is_directory(path, failure);
  const fs::path folder = is_folder ? path : path.parent_path();
  std::vector<std::string> found;
  fs::directory_iterator entries(folder.empty() ? "." : folder, failure);
  for (; !failure && entries != fs::directory_iterator() && found.size() < 2000;
       entries.increment(failure)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(".") || (!is_folder && !name.starts_with(path.filename().string())))
      continue;
    found.push_back((folder / name).string());
  }
  std::ranges::sort(found);
  for (const std::string& name : found) {
    const bool known = std::ranges::find(items, name, &Item::words) != items.end();
    if (items.size() < kMostItems && !known) add(name, "");
  }
  return items;
}

std::vector<Palette::Item> Palette::Formats(
    const std::function<void(const std::string& path)>& export_to) const {
  std::vector<Item> items;
  const std::pair<const char*, const char*> formats[] = {{".png", "the window as a picture"},
                                                         {".svg", "the graph as opened and folded"},
                                                         {".html", "the report of the whole trace"},
                                                         {".dot", "the whole graph for Graphviz"},
                                                         {".json", "the whole graph as data"}};
  const bool complete = std::ranges::any_of(
      formats, [&](const auto& format) { return text_.ends_with(format.first); });
  for (const auto& [ending, words] : formats) {
    if (complete && !text_.ends_with(ending)) continue;
    const std::string path = complete ? text_ : text_ + ending;
    items.push_back({"Formats", path, words, [&export_to, path] { export_to(path); }});
  }
  return items;
}

void Palette::Draw(Ui& ui, const Area& window, const std::vector<std::string>& recent,
                   const std::function<void(const std::string& path)>& export_to) {
  if (!is_open()) return;
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, kind_ == Kind::kKeys     ? "keys"
                          : kind_ == Kind::kOpen   ? "open"
                          : kind_ == Kind::kExport ? "export"
                                                   : "palette");
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
    DrawField(ui, box);
    DrawItems(ui, box,
              kind_ == Kind::kOpen     ? Files(ui, recent)
              : kind_ == Kind::kExport ? Formats(export_to)
                                       : Items(ui));
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
  const char* hint = kind_ == Kind::kOpen     ? "A trace, a log, a folder of logs or an FX text"
                     : kind_ == Kind::kExport ? "A file name"
                                              : "A command, a pass, a node";
  const Area field = {box.x + ui.px(12), box.y + ui.px(12), box.width - ui.px(24), ui.px(32)};
  if (ui.Input("field", hint, field, text_, std::exchange(focus_, false))) chosen_ = 0;
}

void Palette::DrawItems(Ui& ui, const Area& box, const std::vector<Item>& items) {
  const Theme& theme = *ui.theme;
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

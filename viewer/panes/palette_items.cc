#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/compare/text_diff.h"
#include "viewer/panes/palette.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostItems = 200;

char LowerCase(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

/// Whether the words of `text` occur in `words`, in either case and in any order.
bool Fits(std::string_view words, std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (std::ranges::search(words, word, {}, LowerCase, LowerCase).empty() && !word.empty())
      return false;
    begin = end + 1;
  }
  return true;
}

/// The path that a user wrote, with the home folder in place of `~`.
std::string FullPath(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

/// The number of a line; 0: the text has another form.
int64_t LineOf(std::string_view text) {
  int64_t line = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  return error == std::errc() && end == text.data() + text.size() ? line : 0;
}

}  // namespace

std::string KeysOf(const Command& command) {
  std::string keys;
  for (const std::string& key : command.keys)
    keys += (keys.empty() ? "" : "  ") + key;
  return keys;
}

std::vector<Palette::Item> Palette::Items(Ui& ui) const {
  std::vector<Item> items;
  const auto add = [&](Item item) {
    if (items.size() < kMostItems && Fits(item.words, text_)) items.push_back(std::move(item));
  };
  Model& model = ui.model;
  const Comparison* c = model.comparison();
  const SceneNodeId on_line = c == nullptr ? SceneNodeId() : NodeOfLine(*c, LineOf(text_));
  if (on_line.valid())
    items.push_back({"Lines", "Line " + text_, c->NameOf(on_line),
                     [&model, on_line] { model.Reveal(on_line); }});
  for (const Command& command : ui.commands.all())
    add({"Commands", command.words, KeysOf(command), [&command] { command.run(1); }});
  if (model.has_contents()) {
    for (SubjectId id : IdsOf(model.contents().subjects)) {
      const Subject& s = model.contents().subjects[id];
      const std::string place = model.contents().PlaceOf(s);
      add({"Passes and graphs", s.Title(),
           fmt::format("{}{}{}", place, place.empty() ? "" : "  ", CountsText(model.CountsOf(id))),
           [&model, id] { model.Show(id); }});
    }
  }
  if (c != nullptr && !text_.empty()) {
    for (SceneNodeId i : c->nodes()) {
      if (items.size() >= kMostItems) break;
      if (Fits(c->NameOf(i), text_))
        items.push_back({"Nodes", c->NameOf(i), c->LabelOf(i), [&model, i] { model.Reveal(i); }});
    }
  }
  // A whole name comes before words in which it is.
  std::ranges::stable_partition(items, [&](const Item& item) { return item.words == text_; });
  return items;
}

std::vector<Palette::Item> Palette::Files(
    const std::vector<std::string>& recent,
    const std::function<void(const std::string& file)>& open) const {
  namespace fs = std::filesystem;
  std::vector<Item> items;
  const auto add = [&](const std::string& file, std::string key) {
    items.push_back({"Files", file, std::move(key), [open, file] { open(file); }});
  };
  // What was typed comes first if it is a file, then what lies beside or below it.
  const std::string typed = FullPath(text_);
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
    items.push_back({"Formats", path, words, [&export_to, path] { export_to(FullPath(path)); }});
  }
  return items;
}

std::vector<Palette::Item> Palette::Passes(Ui& ui) {
  if (passes_.empty()) passes_ = AllPassWords();
  Model& model = ui.model;
  std::vector<Item> items;
  const Result<int> count = CountPasses(text_);
  const bool blank = text_.find_first_not_of(' ') == std::string::npos;
  refused_ = count || blank ? "" : count.error().message();
  if (count && !blank)
    items.push_back({"Run", "Run " + text_, "Enter",
                     [&model, pipeline = text_] { model.RunPasses(pipeline); }});
  for (PipelineCompletion& completion : CompletePipeline(text_, passes_))
    items.push_back({"Passes", completion.name, completion.words, {}, completion.text});
  return items;
}

std::vector<Palette::Item> Palette::ItemsOf(
    Ui& ui, const std::vector<std::string>& recent,
    const std::function<void(const std::string& path)>& export_to) {
  switch (kind_) {
    case Kind::kOpen:
      return Files(recent, [&ui](const std::string& file) { ui.model.Open(file); });
    case Kind::kCompare:
      return Files(recent, [&ui](const std::string& ref) { ui.model.CompareWith(ref); });
    case Kind::kExport:
      return Formats(export_to);
    case Kind::kPasses:
      return Passes(ui);
    case Kind::kDemo:
      return {{"Demo", text_, "make a demo trace there",
               [&model = ui.model, path = FullPath(text_)] { model.MakeDemo(path); }}};
    case Kind::kCommands:
    case Kind::kKeys:
    case Kind::kClosed:
      break;
  }
  return Items(ui);
}

}  // namespace strata::viewer

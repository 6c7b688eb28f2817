#include "viewer/panes/bars.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// The mark of Strata: three layers.
void DrawMark(Ui& ui, float x, float y) {
  ui.Fill({x, y + ui.px(1), ui.px(14), ui.px(3)}, ui.theme->ink);
  ui.Fill({x + ui.px(6), y + ui.px(7), ui.px(14), ui.px(3)}, ui.theme->accent);
  ui.Fill({x, y + ui.px(14), ui.px(14), ui.px(3)}, ui.theme->ink);
}

std::vector<std::string> Breadcrumb(const Ui& ui) {
  std::vector<std::string> parts;
  const Model& model = ui.model;
  if (model.document() != nullptr)
    parts.push_back(Visible(std::filesystem::path(model.document()->file()).filename().string()));
  if (!model.Title().empty()) parts.push_back(model.Title());
  const Comparison* comparison = model.comparison();
  if (comparison == nullptr || !model.selected().valid()) return parts;
  const std::string module = comparison->ModuleOf(model.selected());
  if (!module.empty()) parts.push_back(module);
  parts.push_back(comparison->NameOf(model.selected()));
  return parts;
}

/// A title that takes at most `room`. Names lose their middle; of two, "A → B", both stay in sight.
std::string FitTitle(const Font& font, const std::string& title, float room) {
  constexpr std::string_view kArrow = " → ";
  const size_t arrow = title.find(kArrow);
  if (arrow == std::string::npos || font.WidthOf(title) <= room) return font.CutName(title, room);
  const std::string before = title.substr(0, arrow), after = title.substr(arrow + kArrow.size());
  room -= font.WidthOf(kArrow);
  return fmt::format("{}{}{}", font.CutName(before, std::max(room / 2, room - font.WidthOf(after))),
                     kArrow, font.CutName(after, std::max(room / 2, room - font.WidthOf(before))));
}

/// What of two graphs differs, or how large the one graph is. REQUIRES: model.comparison().
std::string ChangesText(const Model& model) {
  const SceneCounts& counts = model.comparison()->counts();
  if (counts.differences() > 0) return CountsText(counts);
  const Subject* subject = model.subject();
  if (subject == nullptr || model.from_id().valid()) return "No differences";
  if (subject->kind != Subject::Kind::kPass) return Plural(counts.nodes, "node");
  return subject->changed() ? "Metadata only changed in this pass" : "No changes in this pass";
}

std::string RunWords(const RunEntry& run) {
  std::string words = run.kind;
  if (run.last_step > 0)
    words +=
        fmt::format(", {}{}", run.last_step > 1 ? "steps 1–" : "step ", NumberText(run.last_step));
  if (run.world > 1) words += ", " + run.ranks;
  if (run.status == "running") words += ", live";
  if (run.status == "failed") words += ", failed";
  return words;
}

}  // namespace

/// Where one is, in the middle of the area: file, pass, module and node.
void TopBar::DrawPlace(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const std::vector<std::string> parts = Breadcrumb(ui);
  const auto font = [&](size_t i) {
    return ui.font(i + 1 == parts.size() ? Face::kBold : Face::kSans, 12);
  };
  const float gap = ui.px(20), least = ui.px(72);
  std::vector<float> widths;
  float whole = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    widths.push_back(std::ceil(font(i).WidthOf(parts[i])));
    whole += widths.back() + (i > 0 ? gap : 0);
  }
  // The file gives way first.
  for (float& width : widths) {
    const float less = std::clamp(width - least, 0.0F, std::max(0.0F, whole - area.width));
    width -= less;
    whole -= less;
  }
  float x = area.x + std::max(0.0F, (area.width - whole) / 2);
  for (size_t i = 0; i < parts.size() && x + widths[i] <= area.right() + 1; ++i) {
    if (i > 0) {
      const float middle = area.y + area.height / 2;
      ui.draw().AddTriangleFilled({x - ui.px(13), middle - ui.px(3.5F)},
                                  {x - ui.px(13), middle + ui.px(3.5F)}, {x - ui.px(8), middle},
                                  theme.ink_3);
    }
    const Area at = {x, area.y, widths[i], area.height};
    const std::string words = FitTitle(font(i), parts[i], widths[i]);
    ui.TextIn(at, words, font(i), i + 1 == parts.size() ? theme.ink : theme.ink_2);
    ui.Register(fmt::format("place:{}", i), "text", words, at);
    x += widths[i] + gap;
  }
}

void TopBar::Draw(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "top");
  ui.Fill(area, theme.surface);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  float x = area.x + ui.px(12);
  DrawMark(ui, x, area.y + (area.height - ui.px(18)) / 2);
  x += ui.px(30);
  x += ui.TextIn({x, area.y, area.width, area.height}, "Strata", ui.font(Face::kBold, 13),
                 theme.ink);
  x += ui.px(20);
  const float y = area.y + ui.px(6), height = area.height - ui.px(12);
  if (ui.model.has_contents() && !ui.model.contents().runs.empty()) {
    const Contents& contents = ui.model.contents();
    std::vector<std::string> runs;
    int chosen = 0;
    for (size_t i = 0; i < contents.runs.size(); ++i) {
      runs.push_back(fmt::format("Run {}: {}", static_cast<int64_t>(contents.runs[i].id),
                                 RunWords(contents.runs[i])));
      if (ui.model.subject() != nullptr && ui.model.subject()->run == contents.runs[i].id)
        chosen = static_cast<int>(i);
    }
    const int before = chosen;
    const float width =
        std::min(ui.px(260),
                 ui.font(Face::kBold, 12).WidthOf(runs[static_cast<size_t>(chosen)]) + ui.px(36));
    if (ui.Choice("run", {x, y, width, height}, runs, chosen)) ui.model.StepRun(chosen - before);
    x += width + ui.px(16);
  }
  float right = area.right() - ui.px(12);
  const float themes = ui.px(64);
  if (ui.Button("dark", "Dark", {right - themes, y, themes, height}, theme.dark))
    ui.commands.Find("dark-theme")->run(1);
  right -= themes - ui.px(1);
  if (ui.Button("light", "Light", {right - themes, y, themes, height}, !theme.dark))
    ui.commands.Find("light-theme")->run(1);
  right -= themes + ui.px(12);
  const float commands = ui.px(150);
  if (ui.Button("commands", "Commands  Ctrl P", {right - commands, y, commands, height}))
    ui.commands.Find("palette")->run(1);
  right -= commands + ui.px(16);
  DrawPlace(ui, {x, area.y, right - x, area.height});
}

/// Runs passes on the graph that is shown, or ends those that run. Returns the width.
float PassBar::RunButton(Ui& ui, const Area& area) {
  if (ui.model.comparison() == nullptr) return 0;
  const bool running = ui.model.running_passes();
  const float width = ui.px(110);
  if (ui.Button(
          "run-passes", running ? "Stop passes  P" : "Run passes  P",
          {area.right() - ui.px(12) - width, area.y + ui.px(6), width, area.height - ui.px(12)},
          running))
    ui.commands.Find("run-passes")->run(1);
  return width + ui.px(16);
}

void PassBar::Draw(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "pass");
  ui.Fill(area, theme.surface);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  float x = area.x + ui.px(12);
  const float right = area.right() - ui.px(12) - RunButton(ui, area);
  const Subject* subject = ui.model.subject();
  const bool is_pair = ui.model.from_id().valid();
  if (subject != nullptr && subject->index >= 0 && !is_pair)
    x += ui.TextIn({x, area.y, ui.px(60), area.height}, fmt::format("#{}", subject->index),
                   ui.font(Face::kSans, 13), theme.ink_3) +
         ui.px(8);
  const std::string name =
      subject != nullptr && !is_pair ? Visible(subject->name) : ui.model.Title();
  if (name.empty()) return;
  const Comparison* comparison = ui.model.comparison();
  const std::string words = comparison != nullptr ? ChangesText(ui.model) : "";
  const bool differs = comparison != nullptr && comparison->counts().differences() > 0;
  const Font bold = ui.font(Face::kBold, 15), plain = ui.font(Face::kSans, 12);
  const float rest =
      (differs ? ui.CountsWidth(comparison->counts(), 12) : plain.WidthOf(words)) + ui.px(16);
  const float room = std::max(ui.px(120), right - x - rest);
  x += ui.TextIn({x, area.y, room, area.height}, FitTitle(bold, name, room), bold, theme.ink) +
       ui.px(16);
  ui.Register("title", "text", ui.model.Title(), {area.x, area.y, x - area.x, area.height});
  if (comparison == nullptr) return;
  float end = right;
  if (differs) {
    end = ui.CountsFrom(comparison->counts(), x, area.y + area.height / 2, 12);
  } else {
    ui.TextIn({x, area.y, right - x, area.height}, words, plain, theme.ink_3);
  }
  ui.Register("counts", "text", words, {x, area.y, end - x, area.height});
}

/// What is being opened while another file is shown. Returns the width.
float StatusBar::Progress(Ui& ui, const Area& area, float x) {
  const Theme& theme = *ui.theme;
  const double share = ui.model.opening_share();
  std::string words = "Reading " + Visible(ui.model.opening_name());
  if (share > 0) words += fmt::format(", {:.0f} %", share * 100);
  float width = ui.TextIn({x, area.y, area.width * 0.4F, area.height}, words,
                          ui.font(Face::kSans, 11), theme.ink_2);
  if (share <= 0) return width;
  const Area bar = {x + width + ui.px(8), area.y + area.height / 2 - ui.px(3), ui.px(96), ui.px(6)};
  ui.Fill(bar, theme.well_2, 3);
  ui.Fill({bar.x, bar.y, bar.width * static_cast<float>(share), bar.height}, theme.tick_2, 3);
  ui.Register("progress", "progress", fmt::format("{:.0f}", share * 100), bar);
  return width + ui.px(104);
}

void StatusBar::Draw(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "status");
  ui.Fill(area, theme.surface);
  ui.Fill({area.x, area.y, area.width, 1}, theme.rule);
  const Font font = ui.font(Face::kSans, 11);
  float x = area.x + ui.px(12);
  const auto put = [&](const std::string& words, Color color) {
    if (words.empty()) return;
    const float room = area.right() - ui.px(12) - x;
    if (room > 0) x += ui.TextIn({x, area.y, room, area.height}, words, font, color) + ui.px(20);
  };
  const GraphModel* graph = ui.model.graph();
  if (graph != nullptr && graph->geometry() != nullptr) {
    put(fmt::format("{} of {} nodes drawn", NumberText(graph->geometry()->drawn),
                    NumberText(graph->comparison().size())),
        theme.ink_2);
  }
  if (const Subject* subject = ui.model.subject();
      subject != nullptr && !subject->fingerprint.empty())
    put("fingerprint " + subject->fingerprint.substr(0, 8), theme.ink_3);
  if (ui.model.running_passes()) {
    put(fmt::format("running pass {} of {}", ui.model.passes_done() + 1, ui.model.passes_count()),
        theme.ink_2);
  } else if (ui.model.opening() && ui.model.document() != nullptr) {
    x += Progress(ui, area, x) + ui.px(20);
  } else if (ui.model.busy()) {
    put("working", theme.ink_3);
  }
  const bool failed = !ui.model.error().empty();
  const std::string& message = failed ? ui.model.error() : ui.model.message();
  ui.Register("message", "text", message, {x, area.y, ui.px(200), area.height});
  put(message.substr(0, message.find('\n')), failed ? theme.removed.text : theme.ink);
  const std::string_view keys = "j k passes   n change   1 2 3 4 mode   / search   ? keys";
  const float room = area.right() - ui.px(12) - x;
  if (font.WidthOf(keys) < room)
    ui.TextRight({x, area.y, room, area.height}, keys, font, theme.ink_3);
}

}  // namespace strata::viewer

#include "viewer/panes/start_pane.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/unicode.h"
#include "viewer/model/settings.h"

namespace strata::viewer {

namespace {

/// The message of a file that cannot be opened.
void OpenError(Ui& ui, UiPanel& panel, float left, float width) {
  ImGui::SetCursorScreenPos({left, panel.Next(0).y});
  ImGui::PushFont(ui.font(Face::kMono, 12).font);
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
  ImGui::PushStyleColor(ImGuiCol_Text, ui.theme->removed.text);
  const std::string text = "strata: error: " + ui.model.error();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  ui.Register("error", "text", text, {at.x, at.y, width, ui.px(40)});
  panel.Skip(ui.px(16));
}

/// A file that was open before: a click opens it again.
void RecentFile(Ui& ui, UiPanel& panel, float left, float width, size_t number,
                const std::string& file) {
  const Theme& theme = *ui.theme;
  const Area at = panel.Next(ui.px(26));
  const Area box = {left, at.y, width, at.height};
  const Touch touch = ui.Press(fmt::format("recent:{}", number), "link", file, box);
  if (touch.hovered) ui.Fill(box, theme.well, 4);
  ui.TextIn({left + ui.px(10), at.y, width - ui.px(80), at.height}, Visible(file),
            ui.font(Face::kMono, 12), touch.hovered ? theme.ink : theme.ink_2);
  ui.TextRight({left, at.y, width - ui.px(10), at.height}, fmt::format("Ctrl {}", number),
               ui.font(Face::kSans, 11), theme.ink_3);
  if (touch.clicked) ui.model.Open(file);
}

}  // namespace

/// How far the import is, and a way out of it.
void StartPane::Loading(Ui& ui, UiPanel& panel, float left, float width) {
  const Theme& theme = *ui.theme;
  const double share = ui.model.opening_share();
  const std::string words =
      share > 0 ? fmt::format("Importing the log: {:.0f} %", share * 100)
                : std::string("A log is imported first; the window stays responsive.");
  const Area at = panel.Next(ui.px(24));
  ui.TextIn({left, at.y, width, at.height}, words, ui.font(Face::kSans, 13), theme.ink_2);
  ui.Register("loading", "text", words, {left, at.y, width, at.height});
  if (!ui.model.opening()) return;
  panel.Skip(ui.px(8));
  const Area bar = {left, panel.Next(ui.px(8)).y, width, ui.px(8)};
  ui.Fill(bar, theme.well_2, 4);
  if (share > 0)
    ui.Fill({bar.x, bar.y, std::max(bar.height, bar.width * static_cast<float>(share)), bar.height},
            theme.tick_2, 4);
  ui.Register("progress", "progress", fmt::format("{:.0f}", share * 100), bar);
  panel.Skip(ui.px(12));
  if (ui.Button("cancel", "Cancel", {left, panel.Next(ui.px(26)).y, ui.px(80), ui.px(26)}))
    ui.model.CancelOpening();
}

/// A first trace, for who has none.
void StartPane::Demo(Ui& ui, UiPanel& panel, float left, float width) {
  const Theme& theme = *ui.theme;
  const auto line = [&](std::string_view words, Face face, Color color, float height) {
    const Area at = panel.Next(ui.px(height));
    ui.TextIn({left, at.y, width, at.height}, words, ui.font(face, 13), color);
  };
  line("No trace at hand?", Face::kBold, theme.ink, 28);
  line("The step of a small Llama3, made ready for four ranks by nine passes.", Face::kSans,
       theme.ink_2, 24);
  panel.Skip(ui.px(4));
  const Area at = panel.Next(ui.px(28));
  if (ui.Button("demo", "Make a demo  D", {left, at.y, ui.px(140), at.height}, false, DemoPath()))
    ui.commands.Find("demo")->run(1);
  if (ui.Button("demo-elsewhere", "Choose its place",
                {left + ui.px(148), at.y, ui.px(140), at.height}))
    ui.commands.Find("demo-elsewhere")->run(1);
}

void StartPane::Draw(Ui& ui, const Area& area, const std::vector<std::string>& recent) {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "start");
  UiPanel panel(ui, "page", area, theme.bg);
  const float width = std::min(area.width - ui.px(48), ui.px(640));
  const float left = area.x + (area.width - width) / 2;
  panel.Skip(std::max(ui.px(24), area.height * 0.25F));
  const auto line = [&](std::string_view text, const Font& font, Color color, float height) {
    const Area at = panel.Next(ui.px(height));
    ui.TextIn({left, at.y, width, at.height}, text, font, color);
    return at;
  };
  const bool failed = !ui.model.error().empty();
  if (ui.model.opening() || ui.model.comparing()) {
    line("Reading " + Visible(ui.model.opening_name()), ui.font(Face::kBold, 20), theme.ink, 36);
    Loading(ui, panel, left, width);
    return;
  }
  line(failed ? "This file cannot be shown" : "Strata", ui.font(Face::kBold, 20), theme.ink, 36);
  if (failed) OpenError(ui, panel, left, width);
  if (!recent.empty()) line("Recent files", ui.font(Face::kBold, 13), theme.ink, 28);
  for (size_t i = 0; i < recent.size(); ++i)
    RecentFile(ui, panel, left, width, i + 1, recent[i]);
  if (!recent.empty()) panel.Skip(ui.px(16));
  ui.Register("hint", "text", "Open a trace",
              line("Open a trace, a PyTorch log, a folder of logs of several ranks, or an FX text:",
                   ui.font(Face::kSans, 13), theme.ink_2, 28));
  for (const char* command : {"strata-view out/demo.strata", "strata-view TORCH_TRACE_FOLDER",
                              "strata-view 'run.strata#pass=3&node=mm_12'"}) {
    const Area at = panel.Next(ui.px(28));
    const Area box = {left, at.y + ui.px(2), width, at.height - ui.px(4)};
    ui.Fill(box, theme.well, 4);
    ui.TextIn({box.x + ui.px(10), box.y, box.width, box.height}, command, ui.font(Face::kMono, 12),
              theme.ink);
  }
  panel.Skip(ui.px(12));
  line("Or drop the file on this window.", ui.font(Face::kSans, 13), theme.ink_2, 28);
  panel.Skip(ui.px(16));
  Demo(ui, panel, left, width);
}

}  // namespace strata::viewer

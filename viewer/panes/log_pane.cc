#include "viewer/panes/log_pane.h"

#include <fmt/format.h>

namespace strata::viewer {

void LogPane::Draw(Ui& ui, const Area& area) const {
  const UiScope scope(ui, "log");
  const Theme& theme = *ui.theme;
  UiPanel panel(ui, "lines", area, theme.surface);
  const std::vector<std::string>& lines = ui.model.log();
  ImGuiListClipper clipper;
  const float height = ui.px(20);
  clipper.Begin(static_cast<int>(lines.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const std::string& line = lines[static_cast<size_t>(i)];
      const Area at = panel.Next(height);
      ui.Register(fmt::format("line:{}", i), "text", line, at);
      const Color color = line.starts_with("error")     ? theme.removed.text
                          : line.starts_with("warning") ? theme.changed.text
                                                        : theme.ink_2;
      const Font mono = ui.font(Face::kMono, 11);
      const Area inner = {at.x + ui.px(12), at.y, at.width - ui.px(24), at.height};
      ui.TextIn(inner, line.substr(0, line.find('\n')), mono, color);
      if (ImGui::IsMouseHoveringRect(at.min(), at.max()) && mono.WidthOf(line) > inner.width)
        ui.Tip(line);
    }
  }
}

}  // namespace strata::viewer

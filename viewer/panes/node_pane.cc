#include "viewer/panes/node_pane.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/cost.h"
#include "scene/words.h"
#include "viewer/compare/generated_lines.h"

namespace strata::viewer {

const Blame* NodePane::HistoryOf(Ui& ui, SceneNodeId node) {
  const std::shared_ptr<NodeHistories>& histories = ui.model.histories();
  const Subject* subject = ui.model.subject();
  const Comparison* c = ui.model.comparison();
  if (!histories || subject == nullptr || c == nullptr) return nullptr;
  const bool before = !c->node(node).after.valid();
  const std::string name = c->listing_of(node).name(c->entity_of(node));
  const std::optional<Blame>* blame =
      history_.Get(ui.model.workers(), fmt::format("{} {} {}", subject->selector, before, name),
                   [histories, s = *subject, before, name]() -> std::optional<Blame> {
                     Result<Blame> found = histories->Of(s, before, name);
                     return found ? std::optional<Blame>(std::move(*found)) : std::nullopt;
                   });
  return blame != nullptr && *blame ? &**blame : nullptr;
}

const std::vector<std::string>* NodePane::GeneratedOf(Ui& ui, SceneNodeId node) {
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr || !graph->shared_comparison()) return nullptr;
  const auto& shared = graph->shared_comparison();
  return generated_.Get(ui.model.workers(), fmt::format("{} {}", shared->id(), node.index),
                        [shared, node] { return GeneratedLinesOf(*shared, node); });
}

bool NodePane::Enter(Model& model) {
  if (!slice_.written) return false;
  model.AskForSlice(slice_.text);
  slice_.focus = true;  // for the next slice
  return true;
}

void NodePane::Draw(Ui& ui, const Area& area) {
  slice_.written = false;
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "node");
  UiPanel panel(ui, "sheet", area, theme.surface);
  const Comparison* comparison = ui.model.comparison();
  const SceneNodeId node = ui.model.selected();
  if (comparison != nullptr && node.valid()) {
    NodeSheet(ui, panel, *comparison, node, HistoryOf(ui, node), GeneratedOf(ui, node), slice_)
        .Draw();
    return;
  }
  panel.Skip(ui.px(12));
  const Area title = panel.Next(ui.px(24));
  ui.TextIn({title.x + ui.px(16), title.y, title.width - ui.px(32), title.height},
            "No node selected", ui.font(Face::kBold, 13), theme.ink);
  const bool differs = comparison != nullptr && !comparison->changes().empty();
  const std::string words = differs ? "Click a node, or press n for the first change of this pass."
                                    : "Click a node to see its fields, inputs and outputs.";
  const Font font = ui.font(Face::kSans, 12);
  const float width = title.width - ui.px(32);
  const Area at = panel.Next(ui.px(font.WidthOf(words) > width ? 40 : 20));
  ImGui::SetCursorScreenPos({at.x + ui.px(16), at.y + ui.px(2)});
  ImGui::PushFont(font.font);
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
  ImGui::PushStyleColor(ImGuiCol_Text, theme.ink_2);
  ImGui::TextUnformatted(words.data(), words.data() + words.size());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  ui.Register("empty", "text", words, at);
}

}  // namespace strata::viewer

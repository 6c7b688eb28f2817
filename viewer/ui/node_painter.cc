#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scene/words.h"
#include "viewer/ui/scene_painter.h"

namespace strata::viewer {
namespace {

constexpr std::string_view kArrow = " → ";  // of Comparison::LabelOf

/// Operators that compute nothing: drawn in plain weight.
bool IsView(std::string_view label) {
  static constexpr std::string_view kViews[] = {
      "view",  "_unsafe_view", "reshape", "t",          "transpose",  "permute",   "detach",
      "alias", "expand",       "slice",   "select",     "squeeze",    "unsqueeze", "getitem",
      "input", "output",       "split",   "as_strided", "wait_tensor"};
  const std::string_view word = label.substr(0, label.find_first_of(". "));
  return std::ranges::find(kViews, word) != std::end(kViews);
}

/// Statuses that a border and bold text point out.
bool IsMarked(SceneStatus status) {
  return status != SceneStatus::kSame && status != SceneStatus::kDerived;
}

}  // namespace

// --- Nodes ---

std::optional<Heat> ScenePainter::HeatOfNode(SceneNodeId node) const {
  if (look_.overlay == nullptr || !node.valid() || look_.overlay->ShareOf(node) < 0)
    return std::nullopt;
  return HeatOf(look_.overlay->ShareOf(node));
}

void ScenePainter::ValueLabel(const SceneBox& box) {
  const std::string words = PropertyOf(comparison_, look_.labels, box.node);
  if (words.empty() || IsGone(comparison_.StatusOf(box.node))) return;
  const Font font = FontOf(Face::kMono, 10);
  const std::string shown = font.Cut(words, S(box.width - 16));
  const float width = font.WidthOf(shown), half = S(6);
  const float x = X(box.x + box.width / 2) - width / 2;
  const float y = Y(box.backward ? box.y - 11 : box.bottom() + 11);
  ui_.Fill({x - ui_.px(3), y - half, width + ui_.px(6), 2 * half}, theme().surface);
  ui_.Text(x, y - font.size / 2, shown, font, theme().ink_2);
  if (ui_.tree.recording())
    ui_.Register("label:" + comparison_.NameOf(box.node), "text", words,
                 Clip({x, y - half, width, 2 * half}));
}

/// A box from far away: its fill, and whether it is selected.
void ScenePainter::Mark(const SceneBox& box) {
  const SceneStatus status = box.node.valid() ? comparison_.StatusOf(box.node) : SceneStatus::kSame;
  const bool here = box.node.valid() && (box.node == look_.selected ||
                                         (look_.hits != nullptr && look_.hits->contains(box.node)));
  const Theme::StatusColors* colors = theme().Of(status);
  const std::optional<Heat> heat = HeatOfNode(box.node);
  const Color color = !box.node.valid()                 ? theme().fold
                      : heat && !here                   ? heat->fill
                      : here                            ? theme().accent
                      : colors != nullptr               ? colors->line
                      : status == SceneStatus::kDerived ? theme().edge
                                                        : theme().tick;
  const ImVec2 from = P(box.x, box.y);
  ui_.draw().AddRectFilled(
      from, {from.x + std::max(1.0F, S(box.width)), from.y + std::max(1.0F, S(box.height))},
      Dim(color, IsLit(box)));
}

void ScenePainter::Box(const SceneBox& box) {
  const Area area = Of(box);
  const bool is_lit = IsLit(box);
  if (ui_.tree.recording()) RegisterBox(box, area);
  if (!box.node.valid()) {
    Fold(box, area, is_lit);
    return;
  }
  Halo(box, area);
  if (IsGone(comparison_.StatusOf(box.node))) {
    Ghost(box, area);
  } else {
    Node(box, area, is_lit);
  }
  Control(box, area);
}

/// The part of an area that the stage shows: where a pointer finds it.
Area ScenePainter::Clip(const Area& area) const {
  const float x = std::max(area.x, stage_.x), y = std::max(area.y, stage_.y);
  return {x, y, std::max(0.0F, std::min(area.right(), stage_.right()) - x),
          std::max(0.0F, std::min(area.bottom(), stage_.bottom()) - y)};
}

void ScenePainter::RegisterBox(const SceneBox& box, const Area& whole) {
  const Area area = Clip(whole);
  if (area.width < 1 || area.height < 1) return;
  if (!box.node.valid()) {
    ui_.Register("fold:" + comparison_.NameOf(box.members.front()), "fold",
                 Plural(static_cast<int64_t>(box.members.size()), "node"), area);
  } else {
    ui_.Register("node:" + comparison_.NameOf(box.node), "node",
                 fmt::format("{}, {}", comparison_.LabelOf(box.node),
                             WordOf(comparison_.StatusOf(box.node))),
                 area, box.node == look_.selected);
  }
}

void ScenePainter::Fold(const SceneBox& box, const Area& area, bool is_lit) {
  ui_.Fill(area, Dim(theme().fold, is_lit), 12);
  if (!labels_) return;
  const Font font = FontOf(Face::kSans, 11);
  const std::string count = NumberText(static_cast<int64_t>(box.members.size()));
  const std::string_view kind = box.by_hand ? "hidden" : "unchanged";
  for (const std::string& words :
       {fmt::format("… {} {} nodes", count, kind), fmt::format("… {} {}", count, kind),
        fmt::format("… {}", count), std::string("…")}) {
    const float width = font.WidthOf(words);
    if (width > area.width - ui_.px(8)) continue;
    ui_.Text(area.x + (area.width - width) / 2, area.y + (area.height - font.size) / 2, words, font,
             Dim(theme().ink_3, is_lit));
    return;
  }
}

void ScenePainter::Halo(const SceneBox& box, const Area& area) {
  const auto ring = [&](float offset, float line, Color color) {
    const float o = ui_.px(offset);
    ui_.draw().AddRect({area.x - o, area.y - o}, {area.right() + o, area.bottom() + o}, color,
                       ui_.px(4 + offset), 0, ui_.px(line));
  };
  if (box.node == look_.selected) {
    ring(4, 6, theme().halo);
    ring(1, 2, theme().ink);
  } else if (box.node == look_.hover_node) {
    ring(2, 1, theme().ink_2);
  } else if (look_.hits != nullptr && look_.hits->contains(box.node)) {
    ring(2, 2, theme().accent);
  }
}

void ScenePainter::Control(const SceneBox& box, const Area& area) {
  const float middle = area.y + area.height / 2;
  const float unit = std::max(ui_.px(1), S(1));
  if (look_.breakpoints != nullptr && look_.breakpoints->contains(box.node)) {
    const float radius = 5 * unit;
    const ImVec2 center = {area.x + unit, area.y + unit};  // its corner has no text
    ui_.draw().AddCircleFilled(center, radius, theme().ink);
    ui_.draw().AddCircle(center, radius, theme().bg, 0, ui_.px(1));
    if (ui_.tree.recording())
      ui_.Register("breakpoint:" + comparison_.NameOf(box.node), "mark", "breaks after this node",
                   Clip({center.x - radius, center.y - radius, 2 * radius, 2 * radius}));
  }
  if (box.node != look_.stopped) return;
  // Two bars beside the node, and a line along its left edge.
  ui_.Fill({area.x, area.y, ui_.px(3), area.height}, theme().accent);
  for (const float bar : {19.0F, 12.0F})
    ui_.Fill({area.x - bar * unit, middle - 6 * unit, 4 * unit, 12 * unit}, theme().accent);
  if (ui_.tree.recording())
    ui_.Register("stopped:" + comparison_.NameOf(box.node), "mark", "the training stopped here",
                 Clip({area.x - 19 * unit, middle - 6 * unit, 11 * unit, 12 * unit}));
}

void ScenePainter::Ghost(const SceneBox& box, const Area& area) {
  DashedRect(area, theme().ink_4, ui_.px(1), ui_.px(1.5), ui_.px(3));
  if (!labels_) return;
  const Font font = FontOf(Face::kSans, 11);
  const bool removed = comparison_.StatusOf(box.node) == SceneStatus::kRemoved;
  ui_.Text(area.x + S(10), area.y + (area.height - font.size) / 2,
           removed ? "removed here" : "not here yet", font, theme().ink_3, area.width - S(16));
}

void ScenePainter::Node(const SceneBox& box, const Area& area, bool is_lit) {
  NodeBody(box, area, is_lit);
  if (labels_) NodeWords(box, area, is_lit);
}

void ScenePainter::NodeBody(const SceneBox& box, const Area& area, bool is_lit) {
  const SceneStatus status = comparison_.StatusOf(box.node);
  const Theme::StatusColors* colors = theme().Of(status);
  const float radius = std::min(4.0F, 4 * static_cast<float>(camera_.scale));
  const std::optional<Heat> heat = HeatOfNode(box.node);
  const Color fill = heat                                            ? heat->fill
                     : colors != nullptr && look_.overlay == nullptr ? colors->fill
                                                                     : theme().surface;
  ui_.Fill(area, Dim(fill, is_lit), radius);
  if (status == SceneStatus::kRemoved) Hatch(area, Dim(theme().hatch, is_lit));
  const Color line = Dim(colors != nullptr                 ? colors->line
                         : status == SceneStatus::kDerived ? theme().edge
                                                           : theme().rule_2,
                         is_lit);
  const float width = status == SceneStatus::kAdded ? 2 : IsMarked(status) ? 1.5F : 1;
  if (labels_ && status == SceneStatus::kRemoved) {
    DashedRect(area, line, ui_.px(width), S(5), S(3));
  } else if (labels_ && status == SceneStatus::kMoved) {
    DashedRect(area, line, ui_.px(width), S(1.5), S(2.5));
  } else {
    ui_.Frame(area, line, radius, width);
  }
  if (status == SceneStatus::kChanged || status == SceneStatus::kDerived) {
    const float inset = S(3);
    ui_.Frame({area.x + inset, area.y + inset, area.width - 2 * inset, area.height - 2 * inset},
              line, radius);
  }
}

void ScenePainter::NodeWords(const SceneBox& box, const Area& area, bool is_lit) {
  const SceneStatus status = comparison_.StatusOf(box.node);
  const std::optional<Heat> heat = HeatOfNode(box.node);
  const float first = two_ ? area.y + S(13) : area.y + area.height / 2;
  const float sign = ui_.px(13) * (two_ ? static_cast<float>(camera_.scale) : 0.85F);
  float left = area.x + S(10);
  if (status != SceneStatus::kSame && area.width > 3 * sign) {
    // A derived sign has no fill of its own, so that it needs the ink of a coloured node.
    DrawSign(ui_, area.x + S(8), first - sign / 2, sign / 13, status,
             heat ? heat->ink : theme().ink_3);
    left = area.x + S(8) + sign + ui_.px(5);
  }
  std::string label = comparison_.LabelOf(box.node);
  if (const size_t arrow = label.find(kArrow); arrow != std::string::npos) {
    if (look_.side == Side::kBefore) label.resize(arrow);
    if (look_.side == Side::kAfter) label.erase(0, arrow + kArrow.size());
  }
  const Font op = FontOf(IsMarked(status) || !IsView(label) ? Face::kBold : Face::kSans, 12);
  const float room = area.right() - S(8) - left;
  std::string shown = label;
  // The new operator says more than half of both.
  if (const size_t arrow = label.find(kArrow);
      arrow != std::string::npos && op.WidthOf(label) > room)
    shown = label.substr(arrow + kArrow.size());
  const Color ink = Dim(heat                              ? heat->ink
                        : status == SceneStatus::kRemoved ? theme().ink_2
                                                          : theme().ink,
                        is_lit);
  const float end =
      left + ui_.Text(left, first - op.size / 2, shown, op, ink, std::max(1.0F, room));
  if (!two_) return;
  // The name is dropped, not shortened, where there is no room.
  const std::string& name = comparison_.NameOf(box.node);
  const Font mono = FontOf(Face::kMono, 10);
  const float name_room = area.right() - S(16) - end;
  if (name != label && static_cast<float>(name.size()) * mono.size * 0.5F <= name_room) {
    const float width = mono.WidthOf(name);
    if (width <= name_room)
      ui_.Text(area.right() - S(8) - width, first - mono.size / 2, name, mono,
               Dim(heat               ? heat->ink
                   : IsMarked(status) ? theme().ink_2
                                      : theme().ink_3,
                   is_lit));
  }
  const std::string type = ShortType(comparison_.TypeOf(box.node, look_.side == Side::kBefore));
  const Font small = FontOf(Face::kMono, 10.5);
  const Color quiet = Dim(heat ? heat->ink : theme().ink_2, is_lit);
  const float second = area.y + S(27.5) - small.size / 2;
  float type_room = area.width - S(18);
  const std::string value =
      look_.overlay != nullptr ? look_.overlay->TextOf(box.node) : std::string();
  if (!value.empty()) {
    const float width = small.WidthOf(value);
    ui_.Text(area.right() - S(8) - width, second, value, small, ink);
    type_room -= width + S(6);
  }
  if (type_room > small.size)
    ui_.Text(area.x + S(10), second, type.empty() ? "–" : type, small, quiet, type_room);
}

}  // namespace strata::viewer

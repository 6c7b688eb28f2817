#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/cost.h"
#include "scene/words.h"
#include "viewer/panes/node_sheet.h"

namespace strata::viewer {

void NodeSheet::FieldRow(std::string_view field, const std::string& before,
                         const std::string& after, bool both, bool derived) {
  const Font mono = ui_.font(Face::kMono, 11);
  const float room = panel_.width() - ui_.px(32 + kFieldColumn);
  // Values that do not fit beside each other stand below each other.
  const bool beside =
      !both || std::max(mono.WidthOf(before), mono.WidthOf(after)) <= room / 2 - ui_.px(8);
  const float line = ui_.px(beside ? 24 : 20);
  const Area at = panel_.Next(beside ? line : 2 * line);
  ui_.Register(fmt::format("field:{}", field), "row",
               both ? fmt::format("{} → {}", before, after) : after, at);
  if (!panel_.Shows(at)) return;
  const float left = at.x + ui_.px(16), column = left + ui_.px(kFieldColumn);
  const bool cause = both && !derived;
  if (cause) {
    ui_.Fill(at, theme_.changed.fill);
    ui_.Fill({at.x, at.y, ui_.px(3), at.height}, theme_.changed.line);
  }
  ui_.Fill({at.x, at.bottom() - 1, at.width, 1}, theme_.rule);
  ui_.TextIn({left, at.y, ui_.px(kFieldColumn - 8), line}, field,
             ui_.font(cause ? Face::kBold : Face::kSans, 12),
             cause ? theme_.changed.text : theme_.ink_2);
  const std::string full = both ? fmt::format("{} → {}", before, after) : after;
  if (both) {
    const float width = beside ? room / 2 - ui_.px(8) : room;
    const Area second = beside ? Area{column + room / 2, at.y, width, line}
                               : Area{column, at.y + line, width, line};
    ui_.TextIn({column, at.y, width, line}, before, mono,
               derived ? theme_.ink_3 : theme_.removed.text);
    ui_.TextIn(second, after, mono, derived ? theme_.ink_3 : theme_.added.text);
  } else {
    ui_.TextIn({column, at.y, room, at.height}, after, mono, theme_.ink);
  }
  if (ImGui::IsMouseHoveringRect(at.min(), at.max()) && mono.WidthOf(full) > room) ui_.Tip(full);
}

void NodeSheet::Source() {
  const std::string place = c_.PlaceOf(node_), code = c_.CodeOf(node_);
  if (place.empty()) return;
  Title("Source");
  const Area at = Inner(20);
  ui_.TextIn(at, place, ui_.font(Face::kMono, 11), theme_.ink_2);
  ui_.Register("source", "text", place, at);
  if (code.empty()) return;
  const Area box = Inner(28);
  ui_.Fill(box, theme_.well, 4);
  ui_.Frame(box, theme_.rule, 4);
  ui_.TextIn({box.x + ui_.px(8), box.y, box.width - ui_.px(16), box.height}, code,
             ui_.font(Face::kMono, 11), theme_.ink);
}

void NodeSheet::Generated() {
  if (generated_ == nullptr || generated_->empty()) return;
  Title("Generated C++");
  const UiScope scope(ui_, "generated");
  const Font mono = ui_.font(Face::kMono, 11);
  for (size_t i = 0; i < generated_->size(); ++i) {
    const std::string& line = (*generated_)[i];
    const Area at = panel_.Next(ui_.px(16));
    if (!panel_.Shows(at)) continue;
    const Area inner = {at.x + ui_.px(16), at.y, at.width - ui_.px(32), at.height};
    ui_.Fill(inner, theme_.well);
    const Area text = {inner.x + ui_.px(8), at.y, inner.width - ui_.px(16), at.height};
    ui_.TextIn(text, line, mono, theme_.ink);
    ui_.Register(fmt::format("line:{}", i), "text", line, at);
    if (ImGui::IsMouseHoveringRect(at.min(), at.max()) && mono.WidthOf(line) > text.width)
      ui_.Tip(line);
  }
}

SceneStatus NodeSheet::StatusOf(const BlameEvent& event) {
  if (event.what.starts_with("born")) return SceneStatus::kAdded;
  if (event.what.starts_with("deleted")) return SceneStatus::kRemoved;
  if (event.what.starts_with("given") || event.what.starts_with("carried"))
    return SceneStatus::kSame;
  if (event.what.starts_with("moved") && event.what.find("changed") == std::string::npos)
    return SceneStatus::kMoved;
  return event.what.find("changed") == std::string::npos &&
                 event.what.find("derived") != std::string::npos
             ? SceneStatus::kDerived
             : SceneStatus::kChanged;
}

void NodeSheet::Provenance() {
  if (history_ == nullptr || history_->events.empty()) return;
  Title("Provenance");
  const UiScope scope(ui_, "provenance");
  for (size_t i = 0; i < history_->events.size(); ++i) {
    const BlameEvent& event = history_->events[i];
    const SceneStatus status = StatusOf(event);
    const std::string pass = event.pass_index >= 0
                                 ? fmt::format("#{} {}", event.pass_index, Visible(event.pass))
                                 : "graph " + Visible(event.graph);
    const std::string what = Visible(event.what);
    const Area at = panel_.Next(ui_.px(38));
    const Touch touch =
        ui_.Press(fmt::format("event:{}", i), "link", fmt::format("{}: {}", pass, what), at);
    if (!panel_.Shows(at)) continue;
    if (touch.hovered) ui_.Fill(at, theme_.well);
    const float x = at.x + ui_.px(22), y = at.y + ui_.px(10);
    if (i + 1 < history_->events.size()) ui_.Fill({x - 0.5F, y, 1, ui_.px(38)}, theme_.rule_2);
    const Theme::StatusColors* colors = theme_.Of(status);
    if (status == SceneStatus::kSame) {
      ui_.draw().AddCircleFilled({x, y}, ui_.px(4.5F), theme_.surface);
      ui_.draw().AddCircle({x, y}, ui_.px(4.5F), theme_.edge, 0, ui_.px(1.5F));
    } else {
      const Area mark = {x - ui_.px(4.5F), y - ui_.px(4.5F), ui_.px(9), ui_.px(9)};
      ui_.Fill(mark, theme_.surface);
      ui_.Frame(mark, colors != nullptr ? colors->line : theme_.edge, 0, 2);
    }
    const float left = at.x + ui_.px(36), room = at.right() - ui_.px(16) - left;
    ui_.TextIn({left, at.y + ui_.px(1), room, ui_.px(18)}, pass,
               ui_.font(status == SceneStatus::kSame ? Face::kSans : Face::kBold, 12), theme_.ink);
    ui_.TextIn({left, at.y + ui_.px(18), room, ui_.px(16)}, what, ui_.font(Face::kSans, 11),
               theme_.TextOf(status));
    if (touch.hovered) ui_.Tip(fmt::format("{}\n{}\n{}", pass, what, Visible(event.node)));
    if (touch.clicked) GoTo(event);
  }
  if (history_->confidence < 0.9)
    ui_.TextIn(Inner(20), fmt::format("likely one node, confidence {:.2f}", history_->confidence),
               ui_.font(Face::kSans, 11), theme_.ink_3);
}

void NodeSheet::GoTo(const BlameEvent& event) {
  Link link = ui_.model.CurrentLink();
  const size_t hash = event.ref.find('#');
  link.ref = hash == std::string::npos ? event.ref : event.ref.substr(hash + 1);
  link.node = event.node;
  link.open.clear();
  ui_.model.Follow(link);
}

void NodeSheet::Match() {
  const Pair* pair = c_.PairOf(node_);
  const bool compares = c_.input().before != c_.input().after;
  if (!compares || (pair != nullptr && c_.changes().empty())) return;
  Title("Match");
  std::string words = c_.node(node_).after.valid()
                          ? "New: no node of the graph before is this one."
                          : "Gone: no node of the graph after is this one.";
  if (pair != nullptr) {
    const bool unsure = pair->confidence < 0.9;
    words = fmt::format("{}; {}confidence {:.2f}.", SentenceOf(pair->via),
                        unsure ? "likely the same node, " : "", pair->confidence);
  }
  Area at = Inner(0);
  at.height = ui_.Wrapped(at, words, ui_.font(Face::kSans, 12), theme_.ink_2);
  panel_.Skip(at.height);
  ui_.Register("match", "text", words, at);
  MatchButtons(pair != nullptr);
}

void NodeSheet::MatchButtons(bool matched) {
  const std::string before = c_.node(node_).before.valid() ? NameOf(c_.diff().before, true) : "",
                    after = c_.node(node_).after.valid() ? NameOf(c_.diff().after, false) : "";
  const auto says = [&](const std::vector<std::pair<std::string, std::string>>& list) {
    return std::ranges::any_of(list, [&](const auto& pair) {
      return (!before.empty() && pair.first == before) || (!after.empty() && pair.second == after);
    });
  };
  const std::optional<Pins>& pins = c_.input().pins;
  const bool said = pins && (says(pins->same) || says(pins->never));
  const GraphModel* graph = ui_.model.graph();
  const SceneNodeId other = graph != nullptr ? graph->last_selected() : SceneNodeId();
  const bool fits = other.valid() && other != node_ &&
                    ((c_.node(other).before.valid() && !after.empty()) ||
                     (c_.node(other).after.valid() && !before.empty()));
  panel_.Skip(ui_.px(6));
  const auto button = [&](std::string_view name, const std::string& label, auto run) {
    const Area at = Inner(28);
    const float width = std::min(at.width, ui_.font(Face::kSans, 12).WidthOf(label) + ui_.px(24));
    if (ui_.Button(name, label, {at.x, at.y, width, at.height})) run();
    panel_.Skip(ui_.px(4));
  };
  if (matched) button("break-match", "Not the same node", [&] { ui_.model.BreakMatch(); });
  if (fits && !matched)
    button("pin-match", fmt::format("The same as {}", c_.NameOf(other)),
           [&] { ui_.model.PinMatch(); });
  if (said) button("forget-match", "Forget what I said of it", [&] { ui_.model.ForgetMatch(); });
}

}  // namespace strata::viewer

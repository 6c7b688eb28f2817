#include "viewer/panes/node_pane.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/cost.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr float kFieldColumn = 104;  // width of the names of fields
constexpr size_t kMostRows = 24;     // of inputs and outputs

/// Draws the parts of the pane one below the other.
class Sheet {
 public:
  Sheet(Ui& ui, UiPanel& panel, const Comparison& comparison, int32_t node, const Blame* history)
      : ui_(ui), theme_(*ui.theme), panel_(panel), c_(comparison), node_(node), history_(history) {}

  void Draw() {
    Head();
    Fields();
    ValueAtStop();
    Flows("Inputs", c_.InputsOf(node_));
    Flows("Outputs", c_.OutputsOf(node_));
    Source();
    Provenance();
    Match();
    panel_.Skip(ui_.px(16));
  }

 private:
  Area Inner(float height) {
    const Area at = panel_.Next(ui_.px(height));
    return {at.x + ui_.px(16), at.y, at.width - ui_.px(32), at.height};
  }

  void Title(std::string_view words) {
    panel_.Skip(ui_.px(12));
    const Area at = Inner(24);
    ui_.TextIn(at, words, ui_.font(Face::kBold, 12), theme_.ink_2);
  }

  void Head() {
    panel_.Skip(ui_.px(10));
    const Area at = Inner(24);
    const SceneStatus status = c_.StatusOf(node_);
    const Font title = ui_.font(Face::kBold, 15), chip = ui_.font(Face::kBold, 11);
    const std::string word = std::string(SignOf(status)) + (SignOf(status).empty() ? "" : " ") +
                             std::string(WordOf(status));
    const float chip_width = chip.WidthOf(word) + ui_.px(12);
    const std::string label = c_.LabelOf(node_);
    const float used = ui_.TextIn({at.x, at.y, at.width - chip_width - ui_.px(8), at.height}, label,
                                  title, theme_.ink);
    const Area box = {at.x + used + ui_.px(8), at.y + ui_.px(3), chip_width, ui_.px(18)};
    const Theme::StatusColors* colors = theme_.Of(status);
    ui_.Fill(box, colors != nullptr ? colors->fill : theme_.surface, 3);
    ui_.Frame(box, colors != nullptr ? colors->line : theme_.rule_2, 3);
    ui_.Text(box.x + ui_.px(6), box.y + (box.height - chip.size) / 2, word, chip,
             theme_.TextOf(status));
    ui_.Register("operator", "text", label, at);
    ui_.Register("status", "text", std::string(WordOf(status)), box);
    const Area below = Inner(20);
    const std::string before = c_.NameBefore(node_), &name = c_.NameOf(node_);
    const bool renamed = !before.empty() && before != name && c_.node(node_).after.valid();
    const std::string shown = renamed ? fmt::format("{} → {}", before, name) : name;
    ui_.TextIn(below, shown, ui_.font(Face::kMono, 12), theme_.ink_2);
    ui_.Register("name", "text", shown, below);
  }

  /// A row of the table of fields.
  void FieldRow(std::string_view field, const std::string& before, const std::string& after,
                bool both, bool derived) {
    const Area at = panel_.Next(ui_.px(24));
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
    ui_.TextIn({left, at.y, ui_.px(kFieldColumn - 8), at.height}, field,
               ui_.font(cause ? Face::kBold : Face::kSans, 12),
               cause ? theme_.changed.text : theme_.ink_2);
    const Font mono = ui_.font(Face::kMono, 11);
    const float room = at.right() - ui_.px(16) - column;
    const std::string full = both ? fmt::format("{} → {}", before, after) : after;
    if (both) {
      const float half = room / 2;
      ui_.TextIn({column, at.y, half - ui_.px(8), at.height}, before, mono,
                 derived ? theme_.ink_3 : theme_.removed.text);
      ui_.TextIn({column + half, at.y, half, at.height}, after, mono,
                 derived ? theme_.ink_3 : theme_.added.text);
    } else {
      ui_.TextIn({column, at.y, room, at.height}, after, mono, theme_.ink);
    }
    if (ImGui::IsMouseHoveringRect(at.min(), at.max()) && mono.WidthOf(full) > room) ui_.Tip(full);
  }

  void Fields() {
    Title("Fields");
    const Area head = Inner(22);
    const Font small = ui_.font(Face::kSans, 11);
    const float column = head.x + ui_.px(kFieldColumn), room = head.right() - column;
    ui_.TextIn(head, "field", small, theme_.ink_3);
    ui_.TextIn({column, head.y, room / 2, head.height}, "before", small, theme_.ink_3);
    ui_.TextIn({column + room / 2, head.y, room / 2, head.height}, "after", small, theme_.ink_3);
    std::vector<std::string> shown;
    bool has_cause = false, has_derived = false;
    if (const Pair* pair = c_.PairOf(node_)) {
      for (const bool derived : {false, true}) {
        for (const FieldDiff& field : pair->fields) {
          if (field.derived != derived) continue;
          (derived ? has_derived : has_cause) = true;
          FieldRow(Visible(field.path), Visible(field.before.value_or("–")),
                   Visible(field.after.value_or("–")), true, derived);
          shown.push_back(field.path);
        }
      }
    }
    for (const auto& [field, value] : Values()) {
      if (!value.empty() && std::ranges::find(shown, field) == shown.end())
        FieldRow(field, "", value, false, false);
    }
    Why(has_cause, has_derived);
  }

  std::vector<std::pair<std::string, std::string>> Values() const {
    const Node& n = c_.ir_node(node_);
    const Graph& graph = c_.graph_of(node_);
    std::vector<std::pair<std::string, std::string>> values = {
        {"target", c_.OperatorOf(node_)},
        {"type", c_.TypeOf(node_)},
        {"module", c_.ModuleOf(node_)},
        {"phase", n.phase == Phase::kUnknown ? "" : std::string(ToString(n.phase))}};
    if (n.seq_nr >= 0) values.emplace_back("sequence", fmt::format("{}", n.seq_nr));
    if (n.stream > 0) values.emplace_back("stream", fmt::format("{}", n.stream));
    const Entity& entity = c_.listing_of(node_)[c_.entity_of(node_)];
    const ValueId value = c_.listing_of(node_).value(c_.entity_of(node_));
    if (value.valid() && graph.value(value).type.valid()) {
      const auto bytes = graph.module().types().Bytes(graph.value(value).type);
      if (bytes && *bytes > 0) values.emplace_back("bytes", BytesText(static_cast<double>(*bytes)));
    }
    if (const NodeStatistics* measured = c_.MeasuredOf(node_)) {
      const auto real = [](double number) { return fmt::format("{:.6g}", number); };
      if (measured->time_ns > 0)
        values.emplace_back("time", TimeText(static_cast<double>(measured->time_ns) * 1e-6));
      if (measured->has_values) {
        values.emplace_back("least", real(measured->min));
        values.emplace_back("greatest", real(measured->max));
        values.emplace_back("mean", real(measured->mean));
        values.emplace_back("NaN", NumberText(measured->nan_count));
        values.emplace_back("infinite", NumberText(measured->inf_count));
      }
    }
    if (!entity.element.valid()) {
      const double flops = FlopsOf(graph, entity.node);
      if (flops > 0) values.emplace_back("flops", FlopsText(flops));
      for (const auto& [key, text] : graph.attributes(entity.node))
        values.emplace_back(Visible(graph.module().str(key)), Visible(graph.module().str(text)));
    }
    return values;
  }

  /// What the training under control has computed here.
  void ValueAtStop() {
    const ControlState* control = ui_.model.control();
    if (control == nullptr || control->phase != ControlState::Phase::kStopped || !control->value)
      return;
    const ControlState::Value& value = *control->value;
    if (value.name != c_.listing_of(node_).name(c_.entity_of(node_))) return;
    Title("Value at the stop");
    const UiScope scope(ui_, "value");
    if (!value.error.empty()) {
      Area at = Inner(0);
      const std::string words = Visible(value.error);
      at.height = ui_.Wrapped(at, words, ui_.font(Face::kSans, 12), theme_.ink_2);
      panel_.Skip(at.height);
      ui_.Register("error", "text", words, at);
      return;
    }
    FieldRow("value", "", fmt::format("{} {}", Visible(value.dtype), value.sizes), false, false);
    for (const auto& [name, number] : value.statistics)
      FieldRow(name, "", number, false, false);
    if (value.counts.empty()) return;
    panel_.Skip(ui_.px(8));
    const Area at = Inner(48);
    const auto most = static_cast<float>(std::max<int64_t>(1, std::ranges::max(value.counts)));
    const float width = at.width / static_cast<float>(value.counts.size());
    for (size_t i = 0; i < value.counts.size(); ++i) {
      const float height = at.height * static_cast<float>(value.counts[i]) / most;
      ui_.Fill({at.x + static_cast<float>(i) * width, at.bottom() - height, width - 1, height},
               theme_.tick_2);
    }
    ui_.Fill({at.x, at.bottom(), at.width, 1}, theme_.rule_2);
    ui_.Register("histogram", "chart", fmt::format("{} intervals", value.counts.size()), at);
    const Area below = Inner(18);
    ui_.TextIn(below, "elements between least and greatest", ui_.font(Face::kSans, 11),
               theme_.ink_3);
  }

  void Why(bool has_cause, bool has_derived) {
    if (!has_derived) return;
    const Area at = Inner(24);
    std::string words = "Grey rows with two values follow from the marked row.";
    if (!has_cause) {
      words = "Derived: follows from changes elsewhere.";
      for (const Comparison::Neighbour& input : c_.InputsOf(node_)) {
        if (c_.StatusOf(input.node) == SceneStatus::kSame) continue;
        words = fmt::format("Derived: follows from {}.", c_.NameOf(input.node));
        break;
      }
    }
    ui_.TextIn(at, words, ui_.font(Face::kSans, 11), theme_.ink_3);
    ui_.Register("why", "text", words, at);
  }

  void Flows(std::string_view title, const std::vector<Comparison::Neighbour>& list) {
    if (list.empty()) return;
    Title(fmt::format("{} {}", title, list.size()));
    const UiScope scope(ui_, title == "Inputs" ? "inputs" : "outputs");
    for (size_t i = 0; i < std::min(list.size(), kMostRows); ++i) {
      const auto& [other, status] = list[i];
      const Area at = panel_.Next(ui_.px(22));
      if (!panel_.Shows(at)) continue;
      const std::string& name = c_.NameOf(other);
      const Touch touch = ui_.Press(name, "link", name, at);
      if (touch.hovered) ui_.Fill(at, theme_.well);
      const std::string_view sign = status == SceneStatus::kSame ? "→" : SignOf(status);
      ui_.TextIn({at.x + ui_.px(16), at.y, ui_.px(16), at.height}, sign, ui_.font(Face::kBold, 12),
                 status == SceneStatus::kSame ? theme_.ink_2 : theme_.TextOf(status));
      const std::string type = ShortType(c_.TypeOf(other));
      const Font mono = ui_.font(Face::kMono, 11);
      const float right = at.right() - ui_.px(16);
      const float type_width = std::min(mono.WidthOf(type), at.width * 0.5F);
      ui_.TextRight({right - type_width, at.y, type_width, at.height}, type, mono, theme_.ink_3);
      ui_.TextIn(
          {at.x + ui_.px(34), at.y, right - type_width - ui_.px(8) - at.x - ui_.px(34), at.height},
          name, mono, theme_.ink);
      if (touch.clicked) ui_.model.Reveal(other);
    }
    if (list.size() > kMostRows)
      ui_.TextIn(Inner(20), fmt::format("and {} more", list.size() - kMostRows),
                 ui_.font(Face::kSans, 11), theme_.ink_3);
  }

  void Source() {
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

  /// The status that an event of a history is drawn with.
  static SceneStatus StatusOf(const BlameEvent& event) {
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

  /// What happened to the node over all passes: a circle where it stayed, a square where a pass
  /// touched it.
  void Provenance() {
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
                 ui_.font(status == SceneStatus::kSame ? Face::kSans : Face::kBold, 12),
                 theme_.ink);
      ui_.TextIn({left, at.y + ui_.px(18), room, ui_.px(16)}, what, ui_.font(Face::kSans, 11),
                 theme_.TextOf(status));
      if (touch.hovered) ui_.Tip(fmt::format("{}\n{}\n{}", pass, what, Visible(event.node)));
      if (touch.clicked) GoTo(event);
    }
    if (history_->confidence < 0.9)
      ui_.TextIn(Inner(20), fmt::format("likely one node, confidence {:.2f}", history_->confidence),
                 ui_.font(Face::kSans, 11), theme_.ink_3);
  }

  void GoTo(const BlameEvent& event) {
    Link link = ui_.model.CurrentLink();
    const size_t hash = event.ref.find('#');
    link.ref = hash == std::string::npos ? event.ref : event.ref.substr(hash + 1);
    link.node = event.node;
    link.open.clear();
    ui_.model.Follow(link);
  }

  void Match() {
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

  /// What a person may say of the match.
  void MatchButtons(bool matched) {
    const std::string before = c_.node(node_).before.valid() ? NameOf(c_.diff().before, true) : "",
                      after = c_.node(node_).after.valid() ? NameOf(c_.diff().after, false) : "";
    const auto says = [&](const std::vector<std::pair<std::string, std::string>>& list) {
      return std::ranges::any_of(list, [&](const auto& pair) {
        return (!before.empty() && pair.first == before) ||
               (!after.empty() && pair.second == after);
      });
    };
    const std::optional<Pins>& pins = c_.input().pins;
    const bool said = pins && (says(pins->same) || says(pins->never));
    const GraphModel* graph = ui_.model.graph();
    const int32_t other = graph != nullptr ? graph->last_selected() : -1;
    const bool fits = other >= 0 && other != node_ &&
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

  std::string NameOf(const Listing& listing, bool before) const {
    return listing.name(before ? c_.node(node_).before : c_.node(node_).after);
  }

  Ui& ui_;
  const Theme& theme_;
  UiPanel& panel_;
  const Comparison& c_;
  const int32_t node_;
  const Blame* history_;
};

}  // namespace

const Blame* NodePane::HistoryOf(Ui& ui, int32_t node) {
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

void NodePane::Draw(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const UiScope scope(ui, "node");
  UiPanel panel(ui, "sheet", area, theme.surface);
  const Comparison* comparison = ui.model.comparison();
  const int32_t node = ui.model.selected();
  if (comparison != nullptr && node >= 0) {
    Sheet(ui, panel, *comparison, node, HistoryOf(ui, node)).Draw();
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

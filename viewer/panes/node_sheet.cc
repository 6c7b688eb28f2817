#include "viewer/panes/node_sheet.h"

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

constexpr size_t kMostRows = 24;  // of inputs and outputs

}  // namespace

void NodeSheet::Draw() {
  Head();
  Fields();
  ValueAtStop();
  Flows("Inputs", c_.InputsOf(node_));
  Flows("Outputs", c_.OutputsOf(node_));
  Source();
  Generated();
  Provenance();
  Match();
  panel_.Skip(ui_.px(16));
}

Area NodeSheet::Inner(float height) {
  const Area at = panel_.Next(ui_.px(height));
  return {at.x + ui_.px(16), at.y, at.width - ui_.px(32), at.height};
}

void NodeSheet::Title(std::string_view words) {
  panel_.Skip(ui_.px(12));
  const Area at = Inner(24);
  ui_.TextIn(at, words, ui_.font(Face::kBold, 12), theme_.ink_2);
}

void NodeSheet::Head() {
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

void NodeSheet::Fields() {
  Title("Fields");
  const Area head = Inner(22);
  const Font small = ui_.font(Face::kSans, 11);
  const float column = head.x + ui_.px(kFieldColumn), room = head.right() - column;
  ui_.TextIn(head, "field", small, theme_.ink_3);
  const Pair* const pair = c_.PairOf(node_);
  if (pair != nullptr && !pair->fields.empty()) {
    ui_.TextIn({column, head.y, room / 2, head.height}, "before", small, theme_.ink_3);
    ui_.TextIn({column + room / 2, head.y, room / 2, head.height}, "after", small, theme_.ink_3);
  } else {
    ui_.TextIn({column, head.y, room, head.height}, "value", small, theme_.ink_3);
  }
  std::vector<std::string> shown;
  bool has_cause = false, has_derived = false;
  if (pair != nullptr) {
    for (const bool derived : {false, true}) {
      for (const FieldDiff& field : pair->fields) {
        if (field.derived != derived) continue;
        (derived ? has_derived : has_cause) = true;
        FieldRow(Visible(field.path), Visible(field.before.value_or("–")),
                 Visible(field.after.value_or("–")), true, derived);
        shown.emplace_back(field.path);
      }
    }
  }
  for (const auto& [field, value] : Values()) {
    if (!value.empty() && std::ranges::find(shown, field) == shown.end())
      FieldRow(field, "", value, false, false);
  }
  Why(has_cause, has_derived);
}

std::vector<std::pair<std::string, std::string>> NodeSheet::Values() const {
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
    const auto real = [](double number) { return RealText(number, 6); };
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

void NodeSheet::Why(bool has_cause, bool has_derived) {
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

void NodeSheet::Flows(std::string_view title, const std::vector<Comparison::Neighbour>& list) {
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

std::string NodeSheet::NameOf(const Listing& listing, bool before) const {
  return listing.name(before ? c_.node(node_).before : c_.node(node_).after);
}

}  // namespace strata::viewer

#include <fmt/format.h>

#include "base/unicode.h"
#include "viewer/model/match_pins.h"
#include "viewer/model/model.h"

namespace strata::viewer {
namespace {

/// As pins name it; "": the side lacks the node.
std::string NameBefore(const Comparison& c, SceneNodeId node) {
  return c.node(node).before.valid() ? c.diff().before.name(c.node(node).before) : std::string();
}
std::string NameAfter(const Comparison& c, SceneNodeId node) {
  return c.node(node).after.valid() ? c.diff().after.name(c.node(node).after) : std::string();
}

}  // namespace

void Model::PinMatch() {
  if (!graph_ || !graph_->selected().valid() || !graph_->last_selected().valid())
    return Say("Select a node of the graph before, then one of the graph after");
  const Comparison& c = *comparison();
  SceneNodeId first = graph_->last_selected(), second = graph_->selected();
  if (!c.node(first).before.valid() || !c.node(second).after.valid()) std::swap(first, second);
  const std::string before = NameBefore(c, first), after = NameAfter(c, second);
  if (before.empty() || after.empty() || first == second)
    return Say("Select a node of the graph before, then one of the graph after");
  ChangePins([&](Pins& pins) { PinSame(pins, before, after); },
             fmt::format("Pinned: {} is {}", Visible(before), Visible(after)));
}

void Model::BreakMatch() {
  if (!graph_ || !selected().valid()) return Say("Select a node first");
  const std::string before = NameBefore(*comparison(), selected()),
                    after = NameAfter(*comparison(), selected());
  if (before.empty() || after.empty()) return Say("This node has no counterpart");
  ChangePins([&](Pins& pins) { PinNever(pins, before, after); },
             fmt::format("Broken: {} is not {}", Visible(before), Visible(after)));
}

void Model::ForgetMatch() {
  if (!graph_ || !selected().valid()) return Say("Select a node first");
  const std::string before = NameBefore(*comparison(), selected()),
                    after = NameAfter(*comparison(), selected());
  ChangePins([&](Pins& pins) { strata::Unpin(pins, before, after); },
             fmt::format("Nothing is pinned of {} any more", comparison()->NameOf(selected())));
}

void Model::ChangePins(const std::function<void(Pins&)>& change, const std::string& said) {
  const Comparison::Input& input = comparison()->input();
  if (input.before == input.after || input.file.empty() || input.file == "-" || !shown_)
    return Say("One graph is shown: nothing is matched");
  Pins pins = input.pins.value_or(Pins{});
  change(pins);
  if (!pins.before) pins.before = FingerprintOf(input.before->graph(input.before_graph));
  if (!pins.after) pins.after = FingerprintOf(input.after->graph(input.after_graph));
  if (pins.file.empty()) pins.file = PinsPath(input.file, *pins.before, *pins.after);
  error_.clear();
  ForgetComparisons();
  workers_.Post("compare",
                ComparisonJob(
                    *shown_,
                    [this, wanted = *shown_, said, file = pins.file](const Compared& compared) {
                      if (!compared) return Fail(compared.error());
                      KeepComparison(wanted.key, *compared);
                      ShowComparison(*compared, wanted.graph_key);
                      Say(said);
                      log_.push_back(fmt::format("{}: {}", said, Visible(file)));
                    },
                    pins));
}

}  // namespace strata::viewer

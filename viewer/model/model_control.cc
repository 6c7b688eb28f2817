#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "refs/control_words.h"
#include "viewer/model/model.h"

namespace strata::viewer {

void Model::Attach(const std::string& socket) {
  if (socket.empty()) return Say("Name the socket of strata train --control");
  control_path_ = socket;
  control_ = std::make_unique<ControlSession>(socket, wake_);
  control_state_ = {};
  control_asked_.clear();
  tab = Tab::kLive;
}

void Model::Detach() {
  if (!control_) return;
  control_.reset();
  control_state_ = {};
  FindControlNodes();
  Say("Detached: the training runs on");
}

void Model::Control(const std::string& command, bool typed) {
  if (!control_) return Say("Attach to a training first: see the tab Live");
  control_->Send(command, typed);
}

std::vector<std::string> Model::ControlWords(std::string_view text) const {
  std::vector<std::string> words = ControlWordsAfter(text);
  const std::string_view before = TrimBlanks(text);
  const Comparison* c = comparison();
  if (c == nullptr) return words;
  const bool nodes = before == "print" || before == "break node" || before == "back node";
  const bool ops = before == "break op", modules = before == "break module";
  if (!nodes && !ops && !modules) return words;
  std::set<std::string> all;  // in order, each once
  for (SceneNodeId i : c->nodes()) {
    if (nodes) all.insert(c->listing_of(i).name(c->entity_of(i)));
    if (ops) all.insert(std::string(c->OperatorOf(i)));
    if (modules) all.insert(c->ModuleOf(i));
  }
  words.insert(words.end(), all.begin(), all.end());
  return words;
}

void Model::ToggleBreakpoint() {
  if (!control_) return Say("Attach to a training first: see the tab Live");
  if (!selected().valid()) return Say("Select a node first");
  const Comparison& c = *comparison();
  const std::string at = "node " + c.listing_of(selected()).name(c.entity_of(selected()));
  const auto& breakpoints = control_state_.breakpoints;
  const auto known = std::ranges::find(breakpoints, at, &ControlState::Breakpoint::at);
  if (known != breakpoints.end()) {
    control_->Send(fmt::format("delete {}", known->id));
    Say("No break after this node");
  } else {
    control_->Send("break " + at);
    Say("Break after this node");
  }
}

void Model::GoToStop() {
  if (control_state_.node.empty()) return Say("The training is at no node");
  const SceneNodeId here =
      comparison() != nullptr && subject() != nullptr && subject()->graph == control_state_.graph
          ? comparison()->Find(Visible(control_state_.node))
          : SceneNodeId();
  if (here.valid()) return Reveal(here);
  if (!contents_) return Say("Open the trace of the training to see its nodes");
  // What runs is the last snapshot of a graph.
  for (const Subject& s : std::views::reverse(contents_->subjects)) {
    if (s.graph != control_state_.graph || s.failed) continue;
    Link link = CurrentLink();
    link.ref = s.selector;
    link.from.clear();
    link.open.clear();
    link.node = control_state_.node;
    return Follow(link);
  }
  Say(fmt::format("This trace has no graph {}", Visible(control_state_.graph)));
}

void Model::FindControlNodes() {
  constexpr std::string_view kNode = "node ";
  breakpoint_nodes_.clear();
  stopped_node_ = {};
  control_comparison_ = comparison();
  if (control_comparison_ == nullptr) return;
  for (const ControlState::Breakpoint& breakpoint : control_state_.breakpoints) {
    if (!breakpoint.at.starts_with(kNode)) continue;
    // A condition may follow the name.
    std::string name = breakpoint.at.substr(kNode.size());
    name.resize(std::min(name.find(' '), name.size()));
    const SceneNodeId node = control_comparison_->Find(Visible(name));
    if (node.valid()) breakpoint_nodes_.insert(node);
  }
  const bool is_here = subject() != nullptr && subject()->graph == control_state_.graph &&
                       control_state_.phase == ControlState::Phase::kStopped;
  if (is_here && !control_state_.node.empty())
    stopped_node_ = control_comparison_->Find(Visible(control_state_.node));
}

void Model::AskForSlice(const std::string& slice) {
  if (!control_ || !control_state_.value) return;
  const std::string_view text = TrimBlanks(slice);
  const std::string question = text.empty()            ? "image"
                               : text.starts_with('[') ? std::string(text)
                                                       : fmt::format("[{}]", text);
  control_->Send(fmt::format("print {} {}", control_state_.value->name, question));
}

bool Model::PollControl() {
  if (!control_) return false;
  const uint64_t version = control_->version();
  const bool changed = version != control_version_;
  if (changed) {
    control_version_ = version;
    const int64_t stops = control_state_.stops;
    control_state_ = control_->state();
    if (control_state_.stops != stops && !control_state_.node.empty()) GoToStop();
  }
  if (changed || control_comparison_ != comparison()) FindControlNodes();
  if (control_state_.phase != ControlState::Phase::kStopped || !selected().valid()) return changed;
  const Comparison& c = *comparison();
  const std::string name = c.listing_of(selected()).name(c.entity_of(selected()));
  const std::string asked = fmt::format("{} {}", control_state_.stops, name);
  if (asked == control_asked_) return changed;
  control_asked_ = asked;
  control_->Send(fmt::format("print {} histogram", name));
  control_->Send(fmt::format("print {} image", name));
  return changed;
}

}  // namespace strata::viewer

#include "viewer/panes/control_pane.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <fmt/format.h>

#include "base/complete.h"
#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostLines = 12, kMostChoices = 24;

/// The word after `--control` in the command that started a run; "": there is none.
std::string SocketOf(const RunEntry& run) {
  constexpr std::string_view kOption = "--control";
  const std::string& text = run.command;
  for (size_t at = text.find(kOption); at != std::string::npos; at = text.find(kOption, at + 1)) {
    const size_t begin = at + kOption.size();
    if (begin >= text.size() || (text[begin] != ' ' && text[begin] != '=')) continue;
    return text.substr(begin + 1, text.find(' ', begin + 1) - begin - 1);
  }
  return "";
}

Area Inner(Ui& ui, UiPanel& panel, float height) {
  const Area at = panel.Next(ui.px(height));
  return {at.x + ui.px(12), at.y, at.width - ui.px(24), at.height};
}

void Row(Ui& ui, UiPanel& panel, std::string_view name, std::string_view label,
         const std::string& words, Color color) {
  const Area at = Inner(ui, panel, 20);
  ui.TextIn({at.x, at.y, ui.px(64), at.height}, label, ui.font(Face::kSans, 12), ui.theme->ink_2);
  ui.TextIn({at.x + ui.px(64), at.y, at.width - ui.px(64), at.height}, words,
            ui.font(Face::kMono, 11), color);
  ui.Register(name, "text", words, at);
}

}  // namespace

void ControlPane::Draw(Ui& ui, const Area& area, const RunEntry* run) {
  const UiScope scope(ui, "control");
  UiPanel panel(ui, "panel", area, ui.theme->surface);
  const ControlState* state = ui.model.control();
  in_socket_ = in_command_ = false;
  if (state == nullptr) {
    const Area title = Inner(ui, panel, 28);
    ui.TextIn(title, "Control", ui.font(Face::kBold, 11), ui.theme->ink_2);
    return DrawAttach(ui, panel, run);
  }
  panel.Skip(ui.px(6));
  DrawState(ui, panel, *state);
  DrawButtons(ui, panel, *state);
  if (state->phase == ControlState::Phase::kFailed) return;
  DrawPrompt(ui, panel);
  DrawBreakpoints(ui, panel, *state);
  DrawAnswers(ui, panel, *state);
}

void ControlPane::DrawAttach(Ui& ui, UiPanel& panel, const RunEntry* run) {
  if (run != proposed_) {
    proposed_ = run;
    if (run != nullptr && socket_.empty()) socket_ = SocketOf(*run);
  }
  const Area field = Inner(ui, panel, 28);
  const float button = ui.px(80);
  ui.Input("socket", "socket", {field.x, field.y, field.width - button - ui.px(8), field.height},
           socket_);
  in_socket_ = ImGui::IsItemActive();
  if (ui.Button("attach", "Attach", {field.right() - button, field.y, button, field.height}, false,
                {}, !socket_.empty()))
    ui.model.Attach(socket_);
  panel.Skip(ui.px(6));
  const std::string words =
      "A training that was started with --control SOCKET can be paused, "
      "stepped and inspected here.";
  Area at = Inner(ui, panel, 0);
  at.height = ui.Wrapped(at, words, ui.font(Face::kSans, 12), ui.theme->ink_3);
  panel.Skip(at.height);
  ui.Register("hint", "text", words, at);
}

void ControlPane::DrawState(Ui& ui, UiPanel& panel, const ControlState& state) const {
  const Theme& theme = *ui.theme;
  const bool stopped = state.phase == ControlState::Phase::kStopped;
  std::string status(ToString(state.phase));
  if (stopped && !state.reason.empty()) status += ": " + Visible(state.reason);
  if (state.phase == ControlState::Phase::kFailed) status = Visible(state.error);
  Row(ui, panel, "status", "status", status, stopped ? theme.changed.text : theme.ink);
  if (!state.pass.empty()) Row(ui, panel, "pass", "next pass", Visible(state.pass), theme.ink);
  if (state.steps > 0) {
    std::string steps = fmt::format("{} of {}", state.steps_done, state.steps);
    if (state.loss) steps += ", loss " + RealText(*state.loss);
    Row(ui, panel, "steps", "steps", steps, theme.ink);
    ui.Progress("progress", Inner(ui, panel, 6), state.steps_done, state.steps);
    panel.Skip(ui.px(4));
  }
  if (stopped && !state.node.empty()) {
    const Area at = Inner(ui, panel, 20);
    const Touch touch = ui.Press("node", "link", Visible(state.node), at);
    if (touch.hovered) ui.Fill(at, theme.well);
    ui.TextIn({at.x, at.y, ui.px(64), at.height}, "after", ui.font(Face::kSans, 12), theme.ink_2);
    ui.TextIn({at.x + ui.px(64), at.y, at.width - ui.px(64), at.height},
              fmt::format("{}  {}", Visible(state.node), ShortOperator(Visible(state.op))),
              ui.font(Face::kMono, 11), theme.accent);
    if (touch.hovered)
      ui.Tip(fmt::format("{}\n{}\n{}", Visible(state.op), Visible(state.module),
                         Visible(state.where)));
    if (touch.clicked) ui.model.GoToStop();
  }
  if (!state.saved.empty()) Row(ui, panel, "saved", "saved", Visible(state.saved), theme.ink);
  if (!state.error.empty() && state.phase != ControlState::Phase::kFailed)
    Row(ui, panel, "error", "error", Visible(state.error), theme.removed.text);
}

void ControlPane::DrawButtons(Ui& ui, UiPanel& panel, const ControlState& state) const {
  using Phase = ControlState::Phase;
  panel.Skip(ui.px(4));
  const bool stopped = state.phase == Phase::kStopped, running = state.phase == Phase::kRunning;
  struct Action {
    std::string_view name, label, tip, command;
    bool enabled;
  };
  const auto row = [&](std::initializer_list<Action> actions) {
    const Area at = Inner(ui, panel, 28);
    const float gap = ui.px(4), count = static_cast<float>(actions.size());
    const float width = std::floor((at.width - (count - 1) * gap) / count);
    float x = at.x;
    for (const Action& action : actions) {
      if (ui.Button(action.name, action.label, {x, at.y, width, at.height}, false, action.tip,
                    action.enabled))
        ui.commands.Find(action.command)->run(1);
      x += width + gap;
    }
    panel.Skip(gap);
  };
  const bool continues = stopped || state.phase == Phase::kFinished;
  row({continues ? Action{"continue", "Continue", "F10", "continue", stopped}
                 : Action{"pause", "Pause", "F10", "continue", running},
       {"step-node", "Node", "one node on: F11", "step-node", stopped},
       {"step", "Step", "one training step on: F12", "step", stopped},
       {"back", "Back", "one node back: Shift F11", "step-back", stopped}});
  row({{"save", "Save", "write a checkpoint", "save-checkpoint", stopped || running},
       {"stop", "Stop", "end the training, with a checkpoint", "stop-training", stopped || running},
       {"detach", "Detach", "the training runs on", "detach", true}});
}

void ControlPane::DrawBreakpoints(Ui& ui, UiPanel& panel, const ControlState& state) const {
  const Theme& theme = *ui.theme;
  panel.Skip(ui.px(6));
  for (const ControlState::Breakpoint& breakpoint : state.breakpoints) {
    const Area at = Inner(ui, panel, 22);
    ui.draw().AddCircleFilled({at.x + ui.px(5), at.y + at.height / 2}, ui.px(4), theme.ink);
    const std::string words = Visible(breakpoint.at);
    ui.TextIn({at.x + ui.px(16), at.y, at.width - ui.px(44), at.height}, words,
              ui.font(Face::kMono, 11), theme.ink);
    ui.Register(fmt::format("breakpoint:{}", breakpoint.id), "text", words, at);
    if (ui.Button(fmt::format("delete:{}", breakpoint.id), "×",
                  {at.right() - ui.px(22), at.y, ui.px(22), at.height}))
      ui.model.Control(fmt::format("delete {}", breakpoint.id));
  }
}

void ControlPane::DrawPrompt(Ui& ui, UiPanel& panel) {
  const Theme& theme = *ui.theme;
  panel.Skip(ui.px(4));
  const bool completes = completed_.has_value();
  if (ui.Input("command", "command: break op mm, print NAME, help", Inner(ui, panel, 28), command_,
               std::exchange(focus_, false), &completed_) &&
      !completes)
    choices_.clear();
  in_command_ = ImGui::IsItemActive();
  if (!choices_.empty()) {
    Area at = Inner(ui, panel, 0);
    at.height = ui.Wrapped(at, choices_, ui.font(Face::kMono, 11), theme.ink_2);
    panel.Skip(at.height);
    ui.Register("choices", "text", choices_, at);
  }
}

void ControlPane::DrawAnswers(Ui& ui, UiPanel& panel, const ControlState& state) const {
  const Theme& theme = *ui.theme;
  panel.Skip(ui.px(4));
  const size_t count = std::min(kMostLines, state.transcript.size());
  for (size_t i = 0; i < count; ++i) {
    const std::string& words = state.transcript[state.transcript.size() - 1 - i];
    Area at = Inner(ui, panel, 0);
    at.height = ui.Wrapped(at, VisibleLines(words), ui.font(Face::kMono, 11),
                           words.starts_with("> ") ? theme.ink_3 : theme.ink);
    panel.Skip(at.height + ui.px(2));
    ui.Register(fmt::format("answer:{}", i), "text", words, at);
  }
}

bool ControlPane::Complete(const Model& model) {
  if (!in_command_) return false;
  const Completion completion = strata::Complete(
      command_, [&model](std::string_view text) { return model.ControlWords(text); });
  completed_ = command_ + completion.added;
  focus_ = true;  // Tab would leave the field
  choices_.clear();
  for (size_t i = 0; i < completion.choices.size() && i < kMostChoices; ++i)
    choices_ += (i == 0 ? "" : "  ") + Visible(completion.choices[i]);
  if (completion.choices.size() > kMostChoices)
    choices_ += fmt::format("  … {} more", completion.choices.size() - kMostChoices);
  return true;
}

bool ControlPane::Enter(Model& model) {
  choices_.clear();
  if (in_socket_) model.Attach(socket_);
  if (in_command_ && !command_.empty()) {
    model.Control(command_, true);
    completed_ = "";
    focus_ = true;  // for the next command
  }
  return in_socket_ || in_command_;
}

}  // namespace strata::viewer

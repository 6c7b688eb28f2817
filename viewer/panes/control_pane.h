#pragma once
#include <optional>
#include <string>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Stops, steps and inspects a training that runs with `--control`: where it is, buttons,
/// breakpoints, and a prompt that takes every command of docs/control.md.
class ControlPane {
 public:
  /// `run`: of the trace that is shown; its command may name the socket. Null: none.
  void Draw(Ui& ui, const Area& area, const RunEntry* run);
  /// Enter was pressed; true: it ended a field of this pane.
  bool Enter(Model& model);
  /// Tab was pressed; true: it completed a command.
  bool Complete(const Model& model);

 private:
  void DrawAttach(Ui& ui, UiPanel& panel, const RunEntry* run);
  void DrawState(Ui& ui, UiPanel& panel, const ControlState& state) const;
  void DrawButtons(Ui& ui, UiPanel& panel, const ControlState& state) const;
  void DrawBreakpoints(Ui& ui, UiPanel& panel, const ControlState& state) const;
  void DrawPrompt(Ui& ui, UiPanel& panel);
  void DrawAnswers(Ui& ui, UiPanel& panel, const ControlState& state) const;

  std::string socket_, command_;
  std::optional<std::string> completed_;  // goes into the field
  std::string choices_;                   // words that may come next, after a Tab
  bool focus_ = false;
  const RunEntry* proposed_ = nullptr;           // whose socket was proposed
  bool in_socket_ = false, in_command_ = false;  // the keyboard
};

}  // namespace strata::viewer

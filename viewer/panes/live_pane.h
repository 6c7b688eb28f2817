#pragma once
#include "viewer/panes/control_pane.h"
#include "viewer/ui/chart.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// A training run: its state, control over it, loss, gradient norm and times of steps. Grows while
/// the run does.
class LivePane {
 public:
  void Draw(Ui& ui, const Area& area);
  /// Enter was pressed; true: it ended a field of this pane.
  bool Enter(Model& model) { return control_.Enter(model); }
  /// Tab was pressed; true: it completed a command.
  bool Complete(const Model& model) { return control_.Complete(model); }

 private:
  void State(Ui& ui, const Area& area, const RunEntry& run) const;
  void Charts(Ui& ui, const Area& area, const RunEntry& run) const;

  ControlPane control_;
};

}  // namespace strata::viewer

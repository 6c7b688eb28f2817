#pragma once
#include "viewer/ui/chart.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// A training run: its state, loss, gradient norm and times of steps. Grows while the run does.
class LivePane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void State(Ui& ui, const Area& area, const RunEntry& run) const;
  void Charts(Ui& ui, const Area& area, const RunEntry& run) const;
};

}  // namespace strata::viewer

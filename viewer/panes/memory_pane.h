#pragma once
#include <string>

#include "viewer/compare/async_value.h"
#include "viewer/compare/graph_stats.h"
#include "viewer/compare/memory_plans.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Bytes alive over the program with the largest values at the peak; or plans of less memory for
/// more time.
class MemoryPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  /// The halves of the pane: a picture below a line of words, and a list.
  struct Halves {
    Area head, picture, list;
  };
  void Lines(Ui& ui, const Halves& halves, const GraphModel& graph);
  void Holders(Ui& ui, const Area& area, const MemoryLines& lines) const;
  void Front(Ui& ui, const Halves& halves, const GraphModel& graph);
  void Plans(Ui& ui, const Area& area, const MemoryPlans& plans) const;

  int view_ = 0;  // index into what the choice offers
  AsyncValue<MemoryLines> lines_{"memory"};
  AsyncValue<MemoryPlans> plans_{"memory plans"};
};

}  // namespace strata::viewer

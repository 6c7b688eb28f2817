#pragma once
#include "viewer/compare/async_value.h"
#include "viewer/compare/graph_stats.h"
#include "viewer/ui/chart.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Bytes alive over the program, and the largest values at the peak.
class MemoryPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Holders(Ui& ui, const Area& area, const MemoryLines& lines) const;

  AsyncValue<MemoryLines> lines_{"memory"};
};

}  // namespace strata::viewer

#pragma once
#include "viewer/model/async_value.h"
#include "viewer/model/graph_stats.h"
#include "viewer/ui/chart.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// How often both graphs call each operator; a click selects the first call.
class OperatorsPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Head(Ui& ui, const Area& area);
  void Row(Ui& ui, const Area& area, const OperatorRow& row, int32_t most) const;

  AsyncValue<std::vector<OperatorRow>> rows_{"operators"};
  std::string key_;                 // of `shown_`
  std::vector<OperatorRow> shown_;  // sorted and filtered
  int sort_ = -1;                   // by this column
};

/// Bytes alive over the program, and the largest values at the peak.
class MemoryPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Holders(Ui& ui, const Area& area, const MemoryLines& lines) const;

  AsyncValue<MemoryLines> lines_{"memory"};
};

/// Calls by stream or phase, and collectives from launch to wait: in program order, as a topology
/// would run them, or with measured times.
class LanesPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Spans(Ui& ui, const Area& area, const Lane& lane, const LaneChart& chart);

  AsyncValue<LaneChart> chart_{"lanes"};
  int times_ = 0;                // of the choices
  double zoom_ = 1, begin_ = 0;  // the first position in sight, as a share
};

}  // namespace strata::viewer

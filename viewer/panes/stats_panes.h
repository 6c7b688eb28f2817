#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/async_value.h"
#include "viewer/model/graph_stats.h"
#include "viewer/model/pipeline_lanes.h"
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
/// would run them, or with measured times. Of a run whose ranks are a pipeline also what each rank
/// did, and as it is simulated; a click shows the graph that an action ran.
class LanesPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Spans(Ui& ui, const Area& area, const Lane& lane, const LaneChart& chart);
  void DrawAction(Ui& ui, const Area& bar, const LaneAction& action, float from, float to) const;
  /// Of the run that is shown; null: it has none, or they are not loaded yet.
  const PipelineCharts* Pipeline(Ui& ui);
  /// Shows a graph of the run that is shown.
  static void ShowGraph(Ui& ui, const std::string& graph);

  AsyncValue<LaneChart> chart_{"lanes"};
  AsyncValue<std::optional<PipelineCharts>> pipeline_{"pipeline lanes"};
  std::string times_;            // of the choices; other graphs may lack it
  double zoom_ = 1, begin_ = 0;  // the first position in sight, as a share
};

}  // namespace strata::viewer

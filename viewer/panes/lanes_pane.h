#pragma once
#include <optional>
#include <string>

#include "viewer/compare/async_value.h"
#include "viewer/compare/graph_stats.h"
#include "viewer/compare/pipeline_lanes.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

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

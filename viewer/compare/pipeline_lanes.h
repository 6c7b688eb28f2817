#pragma once
#include <optional>
#include <string>

#include "store/trace.h"
#include "viewer/compare/graph_stats.h"

namespace strata::viewer {

/// What the ranks of a pipeline did in the last step of a run that was profiled, in µs.
struct PipelineCharts {
  LaneChart measured;
  LaneChart simulated;  ///< the same actions, if each took its mean time
};
/// None: no step of the run was measured, or the events are not those of a pipeline.
std::optional<PipelineCharts> PipelineLanes(const std::string& trace_path, RunId run);

}  // namespace strata::viewer

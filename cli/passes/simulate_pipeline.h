#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/schedule/simulation.h"
#include "passes/simulate/timeline.h"

namespace strata::cli {

/// How a pipeline runs whose stages are graphs of a trace.
struct SimulatedPipeline {
  PipelineSchedule schedule;
  ActionTimes times;  ///< of the stages' graphs, in µs; transfers take none
  Simulation simulation;
};

/// `run`: the REF of a run. `schedule`: its kind, or a file FILE.csv. Estimates the graph of each
/// action as `strata simulate` does a step, then simulates the schedule with these times.
/// Errors: the run has no graphs `stage0.forward`, …; a schedule of another number of stages.
Result<SimulatedPipeline> SimulatePipeline(const std::string& run, const std::string& schedule,
                                           int64_t ranks, int64_t microbatches,
                                           const Topology& topology);

/// A line for each stage and each graph of it that the schedule runs, then what the schedule takes.
std::string PipelineText(const SimulatedPipeline& pipeline, const std::string& topology);

}  // namespace strata::cli

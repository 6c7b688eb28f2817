#pragma once
#include <string>

#include "passes/simulate/lower_bound.h"
#include "passes/simulate/timeline.h"

namespace strata::cli {

/// A graph and its estimated execution.
struct SimulatedStep {
  const Graph& graph;
  const Timeline& timeline;
  const StepBound& bound;
};

/// Time of the step, what no order undercuts, of computation and of collectives, and the
/// collectives of each group and of each kind; `before` may be null.
std::string TimelineText(const SimulatedStep& step, const SimulatedStep* before);

/// `strata.simulate/1`; `before` may be null.
std::string TimelineJson(const SimulatedStep& step, const SimulatedStep* before,
                         std::string_view topology);

/// The events of all streams in the Trace Event Format, which Perfetto and chrome://tracing read.
std::string TimelineTrace(const SimulatedStep& step);

}  // namespace strata::cli

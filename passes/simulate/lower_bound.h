#pragma once
#include "base/result.h"
#include "ir/graph.h"
#include "passes/simulate/node_cost.h"

namespace strata {

/// What the order of the nodes of a graph can change of its estimated step.
struct StepBound {
  double least_us = 0;   ///< no order takes less
  double serial_us = 0;  ///< nothing overlaps: computation and collectives, one after the other

  /// The part of what a perfect order would overlap that a step of `step_us` overlaps; 1: all.
  double Overlapped(double step_us) const;
};

/// Bounds the step of Simulate for all orders of the nodes that respect data, and recompute nothing
/// before the first gradient can be computed: recomputation is there to keep nothing until then.
///
/// Computation, links within nodes and links between nodes are machines that can interrupt a job;
/// each job has the longest paths before and after it as its release time and its tail. Where all
/// work but some that nothing waits for comes before or after a node, the parts before and after it
/// are bounded apart, and add up. What can run in several parts counts where, from the first of
/// them on, a machine has more to do than those parts need.
/// Source: J. R. Jackson's preemptive schedule, which is optimal for one such machine; J. Carlier,
/// The one-machine sequencing problem, 1982.
///
/// Cost is linear in nodes and edges, but for sorting. Errors: those of NodeCost::CollectiveUs.
Result<StepBound> StepBoundOf(const Graph& graph, const NodeCost& cost);

}  // namespace strata

#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/pipeline/stage_modules.h"

namespace strata {

/// Where the times of modules come from.
struct BalanceOptions {
  std::string topology;  ///< of a roofline (passes/simulate/node_cost.h); "": the graph's device
  /// File of `strata profile REF --by module --json`, whose times replace the modelled ones.
  std::string times;
};

/// Stages whose longest one takes the least time, each of consecutive modules of the decoder whose
/// step `step` is; among these, the stages with the least sum of squares, which are the most even.
///
/// A module takes the time of its nodes in one microbatch, forward and backward; the loss counts as
/// its last module. Collectives of parameters and of their gradients, which a pipeline runs once in
/// a step, take no modelled time. Errors: more stages than modules, an unknown topology, a profile
/// that lacks a module.
Result<StageModules> BalancedStages(const Graph& step, int64_t num_stages,
                                    const BalanceOptions& options);

/// The sizes of `count` groups of consecutive times, as BalancedStages chooses them. Cost is count
/// times the square of the number of times. REQUIRES: 1 <= count <= times.size(), times >= 0.
std::vector<size_t> DivideEvenly(std::span<const double> times, size_t count);

}  // namespace strata

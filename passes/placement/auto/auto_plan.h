#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/memory/tag_memory.h"
#include "passes/placement/auto/search_space.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/plan.h"
#include "passes/placement/solver/solver.h"

namespace strata {

struct AutoOptions {
  SpaceOptions space;
  SolverOptions solver;
  double memory_bytes = 0;  ///< of a rank when backward begins; 0: not limited
  /// What forward saves for backward, and what backward computes again.
  TagMemory::Policy memory_policy = TagMemory::Policy::kNone;
};

/// The cheapest placements of a step, as far as they are proven.
struct AutoPlacement {
  SearchSpace space;
  SolverResult solved;
  double compute_us = 0, communication_us = 0;  ///< parts of solved.cost
  PairwiseProblem::Row memory;                  ///< what MemoryRow counts
  double memory_bytes = 0;                      ///< its sum
  bool is_memory_tight = false;                 ///< without the limit it would cost less
  TagMemory::Policy memory_policy = TagMemory::Policy::kNone;
  std::string output_entries;  ///< of the constraints, which a plan needs too
  int64_t split_layer = 0;     ///< layers before it got other placements, so that the rest fits
};

/// Of the step `graph`, which `place` did not see. What `constraints` decides of nodes is kept.
/// Errors: those of MakeSearchSpace; no placements satisfy the constraints, or none fit the memory.
Result<AutoPlacement> PlaceAutomatically(Graph& graph, const PlacementPlan& constraints,
                                         const CostModel& model, const AutoOptions& options);

/// The same with each memory policy of `none`, `default` and `full` that could be the cheapest of
/// those that fit: one that computes more again costs more, and takes less memory.
Result<AutoPlacement> PlaceWithMemoryPolicies(Graph& graph, const PlacementPlan& constraints,
                                              const CostModel& model, AutoOptions options);

}  // namespace strata

#include "passes/placement/auto/auto_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/placement/costs/recomputation.h"
#include "passes/placement/place.h"

namespace strata {
namespace {

/// Finds the placements of one graph.
class PlacementSearch {
 public:
  PlacementSearch(Graph& graph, const PlacementPlan& constraints, const CostModel& model,
                  const AutoOptions& options)
      : graph_(graph),
        constraints_(constraints),
        model_(model),
        options_(options),
        watch_(options.solver.clock) {}

  Result<AutoPlacement> Run() {
    STRATA_TRY(recomputation_, RecomputationOf(graph_, options_.memory_policy));
    if (!options_.space.has_twins) return SolveSplitAt(0, kNeverEnough, Left());
    STRATA_TRY(AutoPlacement placement, SolveSplitAt(0, kAlwaysEnough, Left() / 2));
    if (!placement.is_memory_tight) return placement;
    // Layers that are alike all take less memory, or all take more. What is cheapest lies between.
    STRATA_RETURN_IF_ERROR(SplitLayers(placement));
    const bool is_open = placement.solved.status == SolverResult::Status::kFeasible;
    if (placement.split_layer > 0 || !is_open || Left() <= 0) return placement;
    STRATA_TRY(AutoPlacement again, SolveSplitAt(0, kNeverEnough, Left()));
    const double bound = std::max(placement.solved.bound, again.solved.bound);
    if (again.solved.choices.empty() || again.solved.cost > placement.solved.cost)
      std::swap(again, placement);
    again.solved.bound = bound;
    if (again.solved.Gap() <= options_.solver.gap)
      again.solved.status = SolverResult::Status::kOptimal;
    return again;
  }

 private:
  static constexpr double kAlwaysEnough = std::numeric_limits<double>::infinity();
  static constexpr double kNeverEnough = -kAlwaysEnough;

  /// Replaces layers that are alike by the cheapest split of them that is found, if any is cheaper.
  Status SplitLayers(AutoPlacement& placement) {
    const SolverResult alike = placement.solved;
    if (alike.choices.empty() || alike.heavier <= alike.lighter ||
        alike.cost <= NearCost(alike.price_bound))
      return Ok();
    const auto layers = static_cast<double>(NumLayers(graph_));
    const double part = (alike.heavier - options_.memory_bytes) / (alike.heavier - alike.lighter);
    const double least = std::ceil(part * layers);
    for (const double layer : {least, least + 1}) {
      if (layer < 1 || layer >= layers || Left() <= 0) continue;
      const double near = NearCost(alike.price_bound);
      STRATA_TRY(AutoPlacement split, SolveSplitAt(static_cast<int64_t>(layer), near, Left() / 4));
      if (split.solved.choices.empty() || split.solved.cost >= placement.solved.cost) continue;
      placement = std::move(split);
      if (placement.solved.cost <= near) break;
    }
    if (placement.split_layer == 0) return Ok();
    // The proof of a split says nothing of other splits.
    placement.solved.bound = std::min(placement.solved.bound, alike.price_bound);
    if (placement.solved.Gap() > options_.solver.gap)
      placement.solved.status = SolverResult::Status::kFeasible;
    return Ok();
  }

  double NearCost(double bound) const { return bound / (1 - std::max(2e-3, options_.solver.gap)); }

  double Left() const { return std::max(0.0, options_.solver.seconds - watch_.seconds()); }

  /// `enough`: as of SolverOptions.
  Result<AutoPlacement> SolveSplitAt(int64_t layer, double enough, double seconds) {
    AutoPlacement placement;
    SpaceOptions space = options_.space;
    space.split_layer = layer;
    space.recomputed = recomputation_.recomputed;
    STRATA_TRY(placement.space, MakeSearchSpace(graph_, constraints_, model_, space));
    std::vector<ValueId> storages = recomputation_.saved;
    storages.insert(storages.end(), recomputation_.again.begin(), recomputation_.again.end());
    placement.memory = MemoryRow(graph_, placement.space, model_, storages, options_.memory_bytes);
    PairwiseProblem& problem = placement.space.problem;
    if (options_.memory_bytes > 0) problem.rows.push_back(placement.memory);
    SolverOptions solver = options_.solver;
    solver.enough_cost = enough;
    if (price_ > 0) solver.price = price_;
    solver.seconds = seconds;
    placement.solved = Solve(problem, solver);
    placement.is_memory_tight = placement.solved.is_row_tight;
    if (placement.solved.price > 0) price_ = placement.solved.price;
    placement.split_layer = layer;
    return placement;
  }

  Graph& graph_;
  const PlacementPlan& constraints_;
  const CostModel& model_;
  const AutoOptions& options_;
  Recomputation recomputation_;
  double price_ = 0;  ///< of memory, of the last solution
  const WorkWatch watch_;
};

}  // namespace

Result<AutoPlacement> PlaceAutomatically(Graph& graph, const PlacementPlan& constraints,
                                         const CostModel& model, const AutoOptions& options) {
  MakeShareable(graph);
  STRATA_TRY(AutoPlacement placement, PlacementSearch(graph, constraints, model, options).Run());
  using Status = SolverResult::Status;
  if (placement.solved.status == Status::kInfeasible) {
    if (placement.is_memory_tight) {
      return Error(ErrorCode::kUnsupported,
                   "no placements fit {:.1f} GiB on a rank: graph {} on mesh {}: take more ranks, "
                   "or a smaller batch",
                   options.memory_bytes / (1 << 30), graph.name_text(), model.mesh().Text());
    }
    return Error(ErrorCode::kUnsupported,
                 "no placements satisfy the constraints: graph {} on mesh {}: remove some",
                 graph.name_text(), model.mesh().Text());
  }
  if (placement.solved.status == Status::kUnknown) {
    return Error("no placements were found in {} s: graph {} on mesh {}: allow more time",
                 options.solver.seconds, graph.name_text(), model.mesh().Text());
  }
  const PairwiseProblem::Choices& choices = placement.solved.choices;
  for (size_t i = 0; i < choices.size(); ++i) {
    const SearchSpace::Variable& variable = placement.space.variables[i];
    placement.compute_us += static_cast<double>(variable.runs) *
                            variable.strategies[static_cast<size_t>(choices[i])].compute_us;
  }
  placement.communication_us = placement.solved.cost - placement.compute_us;
  placement.memory_bytes = placement.memory.Sum(choices);
  placement.memory_policy = options.memory_policy;
  placement.output_entries = constraints.OutputEntries();
  return placement;
}

Result<AutoPlacement> PlaceWithMemoryPolicies(Graph& graph, const PlacementPlan& constraints,
                                              const CostModel& model, AutoOptions options) {
  using Policy = TagMemory::Policy;
  Result<AutoPlacement> best = Error("no memory policy");
  for (const Policy policy : {Policy::kNone, Policy::kDefault, Policy::kFull}) {
    options.memory_policy = policy;
    Result<AutoPlacement> placement = PlaceAutomatically(graph, constraints, model, options);
    if (!placement && placement.error().code() != ErrorCode::kUnsupported) return placement;
    const bool is_free = placement && !placement->is_memory_tight;
    if (placement && placement->solved.price > 0) options.solver.price = placement->solved.price;
    if (placement && (!best || placement->solved.cost < best->solved.cost)) {
      best = std::move(placement);
    } else if (!best) {
      best = std::move(placement).error();
    }
    // Nothing that computes more again is cheaper.
    if (is_free) break;
  }
  return best;
}

}  // namespace strata

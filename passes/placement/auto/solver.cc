#include "passes/placement/auto/solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "passes/placement/auto/bounds.h"
#include "passes/placement/auto/elimination.h"
#include "passes/placement/auto/linear_program.h"
#include "passes/placement/auto/multipliers.h"
#include "passes/placement/auto/reduction.h"

namespace strata {
namespace {

/// Tables of this size are made in milliseconds.
constexpr double kMaxEntries = 1 << 21;
/// A relative gap that is left by rounding.
constexpr double kExact = 1e-7;

bool HasChoices(const SolverResult& result) {
  return result.status == SolverResult::Status::kOptimal ||
         result.status == SolverResult::Status::kFeasible;
}

/// Where the tables of elimination are small, and no row is violated.
bool SolveBySmallTables(const PairwiseProblem& core, SolverResult& result) {
  if (EliminationEntries(core) > kMaxEntries) return false;
  result.method = "elimination";
  const auto choices = SolveByElimination(core, kMaxEntries);
  if (!choices) {
    result.status = SolverResult::Status::kInfeasible;
    result.bound = std::numeric_limits<double>::infinity();
    return true;
  }
  if (!core.Satisfies(*choices)) return false;
  result.status = SolverResult::Status::kOptimal;
  result.cost = result.bound = core.Cost(*choices);
  result.choices = *choices;
  return true;
}

SolverResult SolveDirectly(const PairwiseProblem& core, const SolverOptions& options) {
  SolverResult result;
  if (SolveBySmallTables(core, result)) return result;
  return HasClp() && options.use_lp ? SolveByLinearProgram(core, options)
                                    : SolveByMultipliers(core, options);
}

/// Solves what `bounds` leave of the problem. Infeasible: no choices cost less than those known.
SolverResult SolveRest(const PairwiseProblem& core, const Bounds& bounds, SolverOptions options) {
  SolverResult result;
  result.status = SolverResult::Status::kInfeasible;
  result.method = "messages";
  result.bound = std::numeric_limits<double>::infinity();
  const auto has_none = [](const std::vector<bool>& left) {
    return std::ranges::count(left, true) == 0;
  };
  if (std::ranges::any_of(bounds.is_left, has_none)) return result;
  const Restriction restriction = Restrict(core, bounds.is_left);
  const Reduction reduction(restriction.problem);
  if (!reduction.is_feasible()) return result;
  options.known_cost = bounds.cost - reduction.constant();
  result = SolveDirectly(reduction.reduced(), options);
  result.core_variables = static_cast<int64_t>(reduction.reduced().variables.size());
  result.bound += reduction.constant();
  if (!HasChoices(result)) return result;
  result.choices = restriction.Expand(reduction.Expand(result.choices));
  result.cost = core.Cost(result.choices);
  return result;
}

SolverResult SolveCore(const PairwiseProblem& core, SolverOptions options) {
  SolverResult result;
  if (SolveBySmallTables(core, result)) return result;
  const auto start = std::chrono::steady_clock::now();
  const Bounds bounds = FindBounds(core, {.seconds = options.seconds / 2});
  const bool has_known = !bounds.choices.empty();
  const bool is_closed =
      has_known && bounds.cost * (1 - std::min(options.gap, kExact)) <= bounds.bound;
  if (!is_closed) {
    options.seconds -=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result = SolveRest(core, bounds, options);
    const bool is_better = HasChoices(result) && result.cost < bounds.cost;
    if (is_better || !has_known) return result;
  }
  const bool is_proven = is_closed || result.status == SolverResult::Status::kInfeasible ||
                         result.status == SolverResult::Status::kOptimal;
  if (result.method.empty()) result.method = "messages";
  result.choices = bounds.choices;
  result.cost = bounds.cost;
  result.bound = std::min(bounds.cost, std::max(bounds.bound, result.bound));
  result.status = is_proven ? SolverResult::Status::kOptimal : SolverResult::Status::kFeasible;
  return result;
}

}  // namespace

double SolverResult::Gap() const {
  return cost <= bound ? 0 : (cost - bound) / std::max(std::abs(cost), 1e-12);
}

SolverResult Solve(const PairwiseProblem& problem, const SolverOptions& options) {
  const Reduction reduction(problem);
  SolverResult result;
  if (!reduction.is_feasible()) {
    result.status = SolverResult::Status::kInfeasible;
    result.method = "elimination";
    return result;
  }
  result = SolveCore(reduction.reduced(), options);
  if (!HasChoices(result)) return result;
  result.choices = reduction.Expand(result.choices);
  result.bound += reduction.constant();
  result.cost = problem.Cost(result.choices);
  if (std::isinf(result.cost)) {
    result.status = SolverResult::Status::kInfeasible;
    result.choices.clear();
  }
  return result;
}

}  // namespace strata

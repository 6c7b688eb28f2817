#include "passes/placement/auto/solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "passes/placement/auto/elimination.h"
#include "passes/placement/auto/linear_program.h"
#include "passes/placement/auto/multipliers.h"
#include "passes/placement/auto/reduction.h"

namespace strata {
namespace {

/// Tables of this size are made in milliseconds.
constexpr double kMaxEntries = 1 << 21;

SolverResult SolveCore(const PairwiseProblem& core, const SolverOptions& options) {
  if (EliminationEntries(core) <= kMaxEntries) {
    SolverResult result;
    result.method = "elimination";
    const auto choices = SolveByElimination(core, kMaxEntries);
    if (!choices) {
      result.status = SolverResult::Status::kInfeasible;
      return result;
    }
    if (core.Satisfies(*choices)) {
      result.status = SolverResult::Status::kOptimal;
      result.cost = result.bound = core.Cost(*choices);
      result.choices = *choices;
      return result;
    }
  }
  return HasClp() && options.use_lp ? SolveByLinearProgram(core, options)
                                    : SolveByMultipliers(core, options);
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
  result.core_variables = static_cast<int64_t>(reduction.reduced().variables.size());
  const bool has_choices = result.status == SolverResult::Status::kOptimal ||
                           result.status == SolverResult::Status::kFeasible;
  if (!has_choices) return result;
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

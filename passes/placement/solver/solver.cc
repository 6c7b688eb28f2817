#include "passes/placement/solver/solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "passes/placement/solver/bounds.h"
#include "passes/placement/solver/elimination.h"
#include "passes/placement/solver/linear_program.h"
#include "passes/placement/solver/multipliers.h"
#include "passes/placement/solver/reduction.h"
#include "passes/placement/solver/row_price.h"

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
bool SolveBySmallTables(const PairwiseProblem& core, WorkClock& clock, SolverResult& result) {
  const double entries = EliminationEntries(core);
  clock.Count(core.NumEntries());
  if (entries > kMaxEntries) return false;
  clock.Count(8 * (entries + core.NumEntries()));
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
  if (SolveBySmallTables(core, *options.clock, result)) return result;
  return HasClp() && options.use_lp ? SolveByLinearProgram(core, options)
                                    : SolveByMultipliers(core, options);
}

/// Of the choices that are left, and that may be in choices that cost `most`. Infeasible: no
/// choices of these cost less than those known.
SolverResult SolveLeft(const PairwiseProblem& core, const Bounds& bounds, double most,
                       SolverOptions options) {
  SolverResult result;
  result.status = SolverResult::Status::kInfeasible;
  result.method = "messages";
  result.bound = std::numeric_limits<double>::infinity();
  const auto has_none = [](const std::vector<bool>& left) {
    return std::ranges::count(left, true) == 0;
  };
  const std::vector<std::vector<bool>> is_left = bounds.IsLeft(most);
  if (std::ranges::any_of(is_left, has_none)) return result;
  const Restriction restriction = Restrict(core, is_left);
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

/// What elimination leaves: bounds from messages, choices from those that the bounds favour, and a
/// program of those that are left then.
class CoreSearch {
 public:
  CoreSearch(const PairwiseProblem& core, const SolverOptions& options)
      : core_(core), options_(options), watch_(options.clock) {}

  /// `prices`: of the rows, where they are known. Infeasible: no choices cost less than is known.
  SolverResult Run(const std::vector<double>& prices) {
    bounds_ = FindBounds(core_, {.seconds = options_.seconds / 2,
                                 .clock = options_.clock,
                                 .prices = prices,
                                 .known_cost = options_.known_cost});
    result_.method = "messages";
    // What costs more than the bound by these parts of it is left out.
    for (const double part : {1e-6, 1e-4, 1e-2})
      if (!IsClosed()) Take(SolveLeft(core_, bounds_, bounds_.bound * (1 + part), Within(0.2)));
    using Status = SolverResult::Status;
    bool is_proven = IsClosed();
    if (!is_proven) {
      SolverResult rest = SolveLeft(core_, bounds_, kInfiniteCost, Within(1));
      is_proven = rest.status == Status::kInfeasible || rest.status == Status::kOptimal;
      bounds_.bound = std::max(bounds_.bound, rest.bound);
      Take(std::move(rest));
    }
    const bool has_choices = !bounds_.choices.empty();
    result_.choices = std::move(bounds_.choices);
    result_.cost = bounds_.cost;
    result_.bound = std::min(bounds_.bound, bounds_.cost);
    result_.status = has_choices ? (is_proven ? Status::kOptimal : Status::kFeasible)
                                 : (is_proven ? Status::kInfeasible : Status::kUnknown);
    return std::move(result_);
  }

 private:
  bool IsClosed() const {
    return !std::isinf(bounds_.cost) &&
           bounds_.cost * (1 - std::min(options_.gap, kExact)) <= bounds_.bound;
  }

  SolverOptions Within(double part) const {
    SolverOptions options = options_;
    options.seconds = part * std::max(0.0, options_.seconds - watch_.seconds());
    return options;
  }

  void Take(SolverResult found) {
    if (found.method != "messages") {
      result_.method = found.method;
      result_.core_variables = found.core_variables;
      result_.columns = found.columns;
      result_.rows = found.rows;
    }
    result_.iterations += found.iterations;
    result_.branches += found.branches;
    if (!HasChoices(found) || found.cost >= bounds_.cost) return;
    bounds_.choices = std::move(found.choices);
    bounds_.cost = found.cost;
  }

  const PairwiseProblem& core_;
  const SolverOptions& options_;
  const WorkWatch watch_;
  Bounds bounds_;
  SolverResult result_;
};

SolverResult SolveCore(const PairwiseProblem& core, const SolverOptions& options,
                       const std::vector<double>& prices) {
  SolverResult result;
  if (SolveBySmallTables(core, *options.clock, result)) return result;
  return CoreSearch(core, options).Run(prices);
}

SolverResult SolveReduced(const PairwiseProblem& problem, SolverOptions options,
                          const std::vector<double>& prices) {
  options.clock->Count(8 * problem.NumEntries());
  const Reduction reduction(problem);
  SolverResult result;
  if (!reduction.is_feasible()) {
    result.status = SolverResult::Status::kInfeasible;
    result.method = "elimination";
    result.bound = kInfiniteCost;
    return result;
  }
  options.known_cost -= reduction.constant();
  result = SolveCore(reduction.reduced(), options, prices);
  result.bound += reduction.constant();
  if (!HasChoices(result)) return result;
  result.choices = reduction.Expand(result.choices);
  result.cost = problem.Cost(result.choices);
  if (std::isinf(result.cost)) {
    result.status = SolverResult::Status::kInfeasible;
    result.choices.clear();
  }
  return result;
}

/// A problem with one row that its cheapest choices may violate.
class RowSearch {
 public:
  RowSearch(const PairwiseProblem& problem, const SolverOptions& options)
      : problem_(problem), options_(options), watch_(options.clock) {}

  SolverResult Run() {
    PairwiseProblem rowless = problem_;
    rowless.rows.clear();
    best_ = SolveReduced(rowless, Within(0.5), {});
    if (!HasChoices(best_) || problem_.Satisfies(best_.choices)) return std::move(best_);
    best_.is_row_tight = true;
    const RowPrice price = FindRowPrice(
        problem_, best_.choices, options_.price,
        [&](const PairwiseProblem& priced, double known) {
          SolverOptions options = Within(0.3);
          options.known_cost = known;
          return SolveReduced(priced, options, {});
        },
        0.5 * Left(), options_.clock);
    best_.bound = best_.price_bound = std::max(best_.bound, price.bound);
    best_.price = price.price;
    best_.heavier = price.heavier;
    best_.lighter = price.lighter;
    best_.choices = price.choices;
    best_.cost = price.cost;
    best_.status = !price.is_feasible      ? SolverResult::Status::kInfeasible
                   : price.choices.empty() ? SolverResult::Status::kUnknown
                                           : SolverResult::Status::kFeasible;
    if (!price.is_feasible) return std::move(best_);
    if (!IsClosed()) Mix(price.found);
    if (!IsClosed() && !IsEnough()) Close({price.price});
    if (IsClosed()) best_.status = SolverResult::Status::kOptimal;
    return std::move(best_);
  }

 private:
  double Left() const { return std::max(0.0, options_.seconds - watch_.seconds()); }
  /// A part of the time that is left.
  SolverOptions Within(double part) const {
    SolverOptions options = options_;
    options.seconds = part * Left();
    options.known_cost = kInfiniteCost;
    return options;
  }
  bool IsClosed() const {
    return !best_.choices.empty() && best_.cost * (1 - options_.gap) <= best_.bound;
  }

  bool IsEnough() const { return !best_.choices.empty() && best_.cost <= options_.enough_cost; }

  void Take(SolverResult other) {
    if (!HasChoices(other) || other.cost >= best_.cost) return;
    best_.choices = std::move(other.choices);
    best_.cost = other.cost;
    best_.status = SolverResult::Status::kFeasible;
  }

  /// The cheapest choices of which each is that of one of `found`.
  void Mix(const std::vector<PairwiseProblem::Choices>& found) {
    std::vector<std::vector<bool>> is_left;
    for (const auto& costs : problem_.variables)
      is_left.emplace_back(costs.size());
    for (const PairwiseProblem::Choices& choices : found)
      for (size_t variable = 0; variable < choices.size(); ++variable)
        is_left[variable][static_cast<size_t>(choices[variable])] = true;
    const Restriction mixed = Restrict(problem_, is_left);
    SolverOptions options = Within(0.4);
    options.known_cost = best_.cost;
    SolverResult solved = SolveReduced(mixed.problem, options, {best_.price});
    if (HasChoices(solved)) solved.choices = mixed.Expand(solved.choices);
    Take(std::move(solved));
  }

  /// What is left of the gap, by branch and bound.
  void Close(const std::vector<double>& prices) {
    SolverOptions options = Within(1);
    options.known_cost = best_.cost;
    SolverResult solved = SolveReduced(problem_, options, prices);
    best_.method = solved.method;
    best_.core_variables = solved.core_variables;
    best_.columns = solved.columns;
    best_.rows = solved.rows;
    best_.iterations = solved.iterations;
    best_.branches = solved.branches;
    const bool is_proven = solved.status == SolverResult::Status::kInfeasible ||
                           solved.status == SolverResult::Status::kOptimal;
    const double bound = solved.bound;
    Take(std::move(solved));
    best_.bound = std::max(best_.bound, std::min(bound, best_.cost));
    if (!is_proven) return;
    best_.status =
        best_.choices.empty() ? SolverResult::Status::kInfeasible : SolverResult::Status::kOptimal;
  }

  const PairwiseProblem& problem_;
  const SolverOptions& options_;
  const WorkWatch watch_;
  SolverResult best_;
};

}  // namespace

double SolverResult::Gap() const {
  return cost <= bound ? 0 : (cost - bound) / std::max(std::abs(cost), 1e-12);
}

SolverResult Solve(const PairwiseProblem& problem, const SolverOptions& options) {
  return problem.rows.size() == 1 ? RowSearch(problem, options).Run()
                                  : SolveReduced(problem, options, {});
}

}  // namespace strata

#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "passes/placement/solver/pairwise.h"
#include "passes/placement/solver/work_clock.h"

namespace strata {

struct SolverOptions {
  double seconds = 60;  ///< of `clock`, after which the best choices so far are returned
  std::shared_ptr<WorkClock> clock = std::make_shared<WorkClock>();
  double gap = 1e-4;   ///< relative, that counts as none
  bool use_lp = true;  ///< with Clp, where the build has it
  /// Choices of this cost are known: others need not be found.
  double known_cost = std::numeric_limits<double>::infinity();
  double price = 0;  ///< of the only row in a similar problem, tried first; 0: not known
  /// Where the price of the only row finds choices of this cost, branch and bound does not look for
  /// cheaper ones.
  double enough_cost = -std::numeric_limits<double>::infinity();
};

struct SolverResult {
  enum class Status : uint8_t {
    kOptimal,     ///< proven up to the gap
    kFeasible,    ///< time was up
    kInfeasible,  ///< proven; `choices` is empty
    kUnknown,     ///< time was up before any choices were found
  };
  Status status = Status::kUnknown;
  PairwiseProblem::Choices choices;
  double cost = 0;
  double bound = 0;           ///< no choices cost less
  bool is_row_tight = false;  ///< the cheapest choices without the only row violate it
  double price_bound = 0;     ///< of the bounds that prices of the only row give, the highest
  double price = 0;  ///< there: by which the cost falls for a unit more that the only row allows
  double heavier = 0, lighter = 0;  ///< weights of choices at the price, beyond the row and within
  std::string method;               ///< "elimination", "Clp"
  // Sizes of what was solved.
  int64_t core_variables = 0, columns = 0, rows = 0, iterations = 0, branches = 0;

  /// Relative distance of cost and bound.
  double Gap() const;
};

/// The least cost of `problem`. A row that the cheapest choices violate is priced first
/// (row_price.h), which gives a bound, and choices of which those with the row are made; the rest
/// knows both. First reduces the problem (reduction.h). What is left is solved exactly by
/// elimination of variables where its tables are small. Otherwise messages bound it and rule out
/// choices (bounds.h). The choices that the bound favours are solved first, in three sizes; where
/// these do not reach the bound, the problem is reduced again, and a linear program solves what is
/// left, with branch and bound where its solution is fractional. Without Clp the rows are priced by
/// multipliers, and branch and bound closes the gap that these leave. Deterministic, also
/// where the limit ends it.
SolverResult Solve(const PairwiseProblem& problem, const SolverOptions& options);

/// True when this build links Clp.
bool HasClp();

}  // namespace strata

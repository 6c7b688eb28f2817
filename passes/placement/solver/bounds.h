#pragma once
#include <memory>
#include <vector>

#include "passes/placement/solver/pairwise.h"
#include "passes/placement/solver/work_clock.h"

namespace strata {

struct BoundsOptions {
  int rounds = 60;      ///< over all variables, for each price of a row
  double seconds = 60;  ///< of `clock`, after which no round starts
  std::shared_ptr<WorkClock> clock = std::make_shared<WorkClock>();
  /// Prices of the rows, where they are known; empty: to be found.
  std::vector<double> prices = {};
  double known_cost = kInfiniteCost;  ///< of choices that satisfy the rows
};

/// What is known of a problem before it is solved.
struct Bounds {
  double bound = 0;                  ///< no choices cost less
  PairwiseProblem::Choices choices;  ///< the best that were found; they satisfy the rows; or empty
  double cost = 0;                   ///< of `choices`, or the known cost; infinity: none
  /// Of each choice: choices that contain it cost at least as much.
  std::vector<std::vector<double>> least;

  /// The choices that may be in choices that cost less than `cost`, and not more than `most`.
  std::vector<std::vector<bool>> IsLeft(double most) const;
};

/// Bounds `problem` from below and above, and rules out choices. Costs move along edges to the
/// variables and back: sums stay as they are, and what all choices of a variable cost at least is
/// the bound. With it, what a choice costs above the least of its variable rules out the choice
/// where both exceed the cost of known choices. Rows are priced by multipliers, which a bisection
/// finds. Linear in the sizes of the edges for each round.
/// Source: TRW-S (V. Kolmogorov, 2006), as reparametrization (SRMP, 2015).
Bounds FindBounds(const PairwiseProblem& problem, const BoundsOptions& options);

/// The problem of the choices that are left.
struct Restriction {
  PairwiseProblem problem;
  std::vector<std::vector<int>> choices_of;  ///< of each variable: what its choices were

  PairwiseProblem::Choices Expand(const PairwiseProblem::Choices& restricted) const;
};
/// REQUIRES: a choice of each variable is left.
Restriction Restrict(const PairwiseProblem& problem, const std::vector<std::vector<bool>>& is_left);

}  // namespace strata

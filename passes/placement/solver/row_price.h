#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "passes/placement/solver/solver.h"

namespace strata {

/// What a row costs that the cheapest choices violate.
struct RowPrice {
  bool is_feasible = true;           ///< false: proven that no choices satisfy the row
  double price = 0;                  ///< of a unit of weight, where `bound` is the highest
  double heavier = 0, lighter = 0;   ///< weights of choices there, beyond the limit and within
  double bound = -kInfiniteCost;     ///< no choices that satisfy the row cost less
  PairwiseProblem::Choices choices;  ///< the cheapest that were found; empty: none
  double cost = kInfiniteCost;       ///< of `choices`
  std::vector<PairwiseProblem::Choices> found;  ///< the cheapest ones at each price that was tried
};

/// Solves a problem without rows. Choices of the cost `known` need not be found.
using RowlessSolver = std::function<SolverResult(const PairwiseProblem&, double known)>;

/// Prices the only row of `problem`. Choices with the row priced have a cost and a weight; those
/// that are cheapest at some price are corners of a convex curve. The search keeps a corner on each
/// side of the limit, and tries the price at which both cost the same, until nothing is cheaper:
/// this is the best bound that a price gives. The cost of the corners at a price is known, so only
/// what is cheaper is searched for there. `free`: the cheapest choices without the row. `guess`:
/// the price of a similar problem, which is tried first; 0: none. Source: Lagrangian relaxation, by
/// the method of Dinkelbach on both sides of the limit. `seconds`: of `clock`, after which no price
/// is tried.
RowPrice FindRowPrice(const PairwiseProblem& problem, const PairwiseProblem::Choices& free,
                      double guess, const RowlessSolver& solve, double seconds,
                      const std::shared_ptr<const WorkClock>& clock);

}  // namespace strata

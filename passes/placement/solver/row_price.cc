#include "passes/placement/solver/row_price.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "passes/placement/solver/multipliers.h"

namespace strata {
namespace {

class PriceSearch {
 public:
  PriceSearch(const PairwiseProblem& problem, const RowlessSolver& solve, double seconds,
              const std::shared_ptr<const WorkClock>& clock)
      : problem_(problem),
        row_(problem.rows[0]),
        solve_(solve),
        seconds_(seconds),
        watch_(clock),
        priced_(problem) {
    priced_.rows.clear();
  }

  RowPrice Run(const PairwiseProblem::Choices& free, double guess) {
    above_ = CornerOf(free);
    price_.found.push_back(free);
    if (guess > 0) TryPrice(guess);
    if (!below_ && !FindLightest()) return std::move(price_);
    constexpr int kSteps = 40;
    for (int step = 0; step < kSteps && !IsLate() && above_.weight > below_->weight; ++step) {
      const double price = (below_->cost - above_.cost) / (above_.weight - below_->weight);
      // What is lighter costs nothing more, or nothing is cheaper.
      if (price <= 0 || !TryPrice(price)) break;
    }
    price_.heavier = above_.weight;
    price_.lighter = below_->weight;
    return std::move(price_);
  }

 private:
  struct Corner {
    double cost = 0, weight = 0;
  };
  Corner CornerOf(const PairwiseProblem::Choices& choices) const {
    return {problem_.Cost(choices), row_.Sum(choices)};
  }
  bool Fits(const Corner& corner) const { return corner.weight <= row_.limit; }

  /// Replaces a corner by the cheapest choices at a price. False: none cost less than the corners.
  bool TryPrice(double price) {
    double known = above_.cost + price * above_.weight;
    if (below_) known = std::min(known, below_->cost + price * below_->weight);
    const SolverResult solved = SolveAt(price, known);
    const double bound = std::min(solved.bound, known) - price * row_.limit;
    if (bound > price_.bound) {
      price_.bound = bound;
      price_.price = price;
    }
    if (solved.choices.empty()) return false;
    const Corner corner = CornerOf(solved.choices);
    if (corner.cost + price * corner.weight >= known - 1e-9 * std::abs(known)) return false;
    price_.found.push_back(solved.choices);
    Offer(solved.choices);
    if (Fits(corner)) {
      below_ = corner;
    } else {
      above_ = corner;
    }
    return true;
  }

  bool IsLate() const { return watch_.seconds() > seconds_; }

  SolverResult SolveAt(double price, double known) {
    priced_.variables = problem_.variables;
    for (const auto& term : row_.terms)
      for (size_t choice = 0; choice < term.weights.size(); ++choice)
        priced_.variables[static_cast<size_t>(term.variable)][choice] +=
            price * term.weights[choice];
    return solve_(priced_, known);
  }

  /// The least weight of all choices, in parts of the limit. False: it exceeds the limit, or is not
  /// known.
  bool FindLightest() {
    PairwiseProblem weights = priced_;
    const auto zero = [](double& cost) { cost = std::isinf(cost) ? cost : 0; };
    for (auto& costs : weights.variables)
      std::ranges::for_each(costs, zero);
    for (PairwiseProblem::Edge& edge : weights.edges)
      std::ranges::for_each(edge.costs, zero);
    const double scale = 1 / std::max(row_.limit, 1e-12);
    for (const auto& term : row_.terms)
      for (size_t choice = 0; choice < term.weights.size(); ++choice)
        weights.variables[static_cast<size_t>(term.variable)][choice] +=
            scale * term.weights[choice];
    const SolverResult solved = solve_(weights, kInfiniteCost);
    price_.is_feasible = solved.status != SolverResult::Status::kInfeasible &&
                         solved.bound * row_.limit <= row_.limit * (1 + 1e-9);
    if (!price_.is_feasible || solved.choices.empty()) return false;
    below_ = CornerOf(solved.choices);
    if (!Fits(*below_)) return false;
    price_.found.push_back(solved.choices);
    Offer(solved.choices);
    return true;
  }

  void Offer(PairwiseProblem::Choices choices) {
    if (!problem_.Satisfies(choices)) return;
    ImproveChoices(problem_, choices);
    const double cost = problem_.Cost(choices);
    if (cost >= price_.cost) return;
    price_.cost = cost;
    price_.choices = std::move(choices);
  }

  const PairwiseProblem& problem_;
  const PairwiseProblem::Row& row_;
  const RowlessSolver& solve_;
  const double seconds_;
  const WorkWatch watch_;
  PairwiseProblem priced_;  ///< without the row
  RowPrice price_;
  Corner above_;                 ///< beyond the limit
  std::optional<Corner> below_;  ///< within it
};

}  // namespace

RowPrice FindRowPrice(const PairwiseProblem& problem, const PairwiseProblem::Choices& free,
                      double guess, const RowlessSolver& solve, double seconds,
                      const std::shared_ptr<const WorkClock>& clock) {
  return PriceSearch(problem, solve, seconds, clock).Run(free, guess);
}

}  // namespace strata

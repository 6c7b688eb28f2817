#include "passes/placement/solver/multipliers.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "passes/placement/solver/elimination.h"
#include "passes/placement/solver/messages.h"

namespace strata {
namespace {

using Choices = PairwiseProblem::Choices;
constexpr double kMaxPricedEntries = 1 << 22;
constexpr int kRounds = 100;  // of messages

class MultiplierSearch {
 public:
  MultiplierSearch(const PairwiseProblem& problem, const SolverOptions& options)
      : problem_(problem),
        options_(options),
        watch_(options.clock),
        is_exact_(EliminationEntries(problem) <= kMaxPricedEntries),
        priced_(problem),
        multipliers_(problem.rows.size()) {
    priced_.rows.clear();
    result_.method = is_exact_ ? "multipliers" : "messages";
    result_.cost = options.known_cost;
    result_.core_variables = static_cast<int64_t>(problem.variables.size());
  }

  SolverResult Run() {
    std::vector<std::vector<bool>> allowed;
    for (const auto& costs : problem_.variables)
      allowed.emplace_back(costs.size(), true);
    result_.bound = Visit(allowed);
    using Status = SolverResult::Status;
    const bool has_choices = !result_.choices.empty();
    if (is_late_ || result_.cost * (1 - options_.gap) > result_.bound) {
      result_.status = has_choices ? Status::kFeasible : Status::kUnknown;
    } else {
      result_.status = has_choices ? Status::kOptimal : Status::kInfeasible;
    }
    return std::move(result_);
  }

 private:
  struct Relaxed {
    Choices choices;  // empty: none are allowed
    double bound = kInfiniteCost;
  };

  /// The least cost with rows priced, and a bound of the cost with rows.
  Relaxed Minimise(const std::vector<std::vector<bool>>& allowed) {
    double constant = 0;
    priced_.variables = problem_.variables;
    for (size_t r = 0; r < multipliers_.size(); ++r) {
      const PairwiseProblem::Row& row = problem_.rows[r];
      if (multipliers_[r] == 0) continue;
      constant -= multipliers_[r] * row.limit;
      for (const auto& term : row.terms)
        for (size_t choice = 0; choice < term.weights.size(); ++choice)
          priced_.variables[static_cast<size_t>(term.variable)][choice] +=
              multipliers_[r] * term.weights[choice];
    }
    for (size_t variable = 0; variable < allowed.size(); ++variable)
      for (size_t choice = 0; choice < allowed[variable].size(); ++choice)
        if (!allowed[variable][choice]) priced_.variables[variable][choice] = kInfiniteCost;
    ++result_.iterations;
    options_.clock->Count((is_exact_ ? 8 : 4 * kRounds) * problem_.NumEntries());
    Relaxed relaxed;
    if (is_exact_) {
      auto choices = SolveByElimination(priced_, kMaxPricedEntries);
      if (!choices) return relaxed;
      relaxed.bound = priced_.Cost(*choices) + constant;
      relaxed.choices = *std::move(choices);
    } else {
      MessageResult passed = PassMessages(priced_, kRounds);
      relaxed.bound = passed.bound + constant;
      relaxed.choices = std::move(passed.choices);
    }
    Offer(relaxed.choices);
    return relaxed;
  }

  void Offer(Choices choices) {
    if (!problem_.Satisfies(choices)) return;
    double cost = problem_.Cost(choices);
    if (!is_exact_ && !std::isinf(cost)) {
      ImproveChoices(problem_, choices);
      cost = problem_.Cost(choices);
    }
    if (cost >= result_.cost) return;
    result_.cost = cost;
    result_.choices = std::move(choices);
  }

  /// The best bound that one multiplier after the other gives, and the choices that violate it.
  Relaxed Bound(const std::vector<std::vector<bool>>& allowed) {
    std::ranges::fill(multipliers_, 0.0);
    Relaxed best = Minimise(allowed);
    if (best.choices.empty() || problem_.Satisfies(best.choices)) return best;
    constexpr int kSweeps = 3, kSteps = 40;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (size_t r = 0; r < multipliers_.size(); ++r) {
        const PairwiseProblem::Row& row = problem_.rows[r];
        double low = 0, high = kInfiniteCost, best_multiplier = multipliers_[r];
        double next = multipliers_[r] > 0 ? multipliers_[r] : 1 / std::max(row.limit, 1e-12);
        for (int step = 0; step < kSteps; ++step) {
          multipliers_[r] = next;
          Relaxed relaxed = Minimise(allowed);
          (row.Sum(relaxed.choices) > row.limit ? low : high) = next;
          if (relaxed.bound > best.bound) {
            best = std::move(relaxed);
            best_multiplier = next;
          }
          if (high - low <= 1e-9 * high) break;
          next = std::isinf(high) ? next * 4 : (low + high) / 2;
        }
        multipliers_[r] = best_multiplier;
      }
      if (multipliers_.size() == 1) break;
    }
    return best;
  }

  double Visit(std::vector<std::vector<bool>> allowed) {
    const Relaxed relaxed = Bound(allowed);
    if (relaxed.bound >= result_.cost * (1 - options_.gap)) return relaxed.bound;
    const auto [variable, choice] = Branch(allowed, relaxed.choices);
    if (is_exact_ && variable == SIZE_MAX)  // all that the rows weigh is decided
      return problem_.Satisfies(relaxed.choices) ? relaxed.bound : kInfiniteCost;
    is_late_ = is_late_ || watch_.seconds() >= options_.seconds;
    if (is_late_ || !is_exact_) return relaxed.bound;
    auto others = allowed;
    others[variable][choice] = false;
    std::fill(allowed[variable].begin(), allowed[variable].end(), false);
    allowed[variable][choice] = true;
    ++result_.branches;
    const double without = Visit(std::move(others)), with = Visit(std::move(allowed));
    return std::max(relaxed.bound, std::min(with, without));
  }

  /// The choice that weighs the most in the rows, of a variable that has others.
  std::pair<size_t, size_t> Branch(const std::vector<std::vector<bool>>& allowed,
                                   const Choices& choices) const {
    std::pair<size_t, size_t> found{SIZE_MAX, 0};
    double most = -1;
    for (const PairwiseProblem::Row& row : problem_.rows) {
      for (const auto& term : row.terms) {
        const auto variable = static_cast<size_t>(term.variable);
        const auto choice = static_cast<size_t>(choices[variable]);
        if (std::ranges::count(allowed[variable], true) < 2) continue;
        const double weight = term.weights[choice] / std::max(row.limit, 1e-12);
        if (weight <= most) continue;
        most = weight;
        found = {variable, choice};
      }
    }
    return found;
  }

  const PairwiseProblem& problem_;
  const SolverOptions options_;
  const WorkWatch watch_;
  const bool is_exact_;
  PairwiseProblem priced_;
  std::vector<double> multipliers_;
  SolverResult result_;
  bool is_late_ = false;
};

}  // namespace

SolverResult SolveByMultipliers(const PairwiseProblem& problem, const SolverOptions& options) {
  return MultiplierSearch(problem, options).Run();
}

void ImproveChoices(const PairwiseProblem& problem, Choices& choices) {
  std::vector<std::vector<const PairwiseProblem::Edge*>> edges_of(problem.variables.size());
  for (const PairwiseProblem::Edge& edge : problem.edges) {
    edges_of[static_cast<size_t>(edge.a)].push_back(&edge);
    edges_of[static_cast<size_t>(edge.b)].push_back(&edge);
  }
  const auto cost_of = [&](size_t variable) {
    double cost = problem.variables[variable][static_cast<size_t>(choices[variable])];
    for (const PairwiseProblem::Edge* edge : edges_of[variable])
      cost +=
          edge->cost(choices[static_cast<size_t>(edge->a)], choices[static_cast<size_t>(edge->b)]);
    return cost;
  };
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (size_t variable = 0; variable < choices.size(); ++variable) {
      int best = choices[variable];
      double least = cost_of(variable);
      for (size_t choice = 0; choice < problem.variables[variable].size(); ++choice) {
        choices[variable] = static_cast<int>(choice);
        const double cost = cost_of(variable);
        if (cost >= least - 1e-9 || !problem.Satisfies(choices)) continue;
        least = cost;
        best = static_cast<int>(choice);
        has_changed = true;
      }
      choices[variable] = best;
    }
  }
}

}  // namespace strata

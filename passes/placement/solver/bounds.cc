#include "passes/placement/solver/bounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "passes/placement/solver/multipliers.h"

namespace strata {
namespace {

using Choices = PairwiseProblem::Choices;
/// Relative; what costs as much as known choices, up to rounding, is ruled out.
constexpr double kRounding = 1e-9;

/// The costs of a problem, moved such that none is negative, and a constant.
class MovedCosts {
 public:
  explicit MovedCosts(const PairwiseProblem& problem)
      : problem_(problem), costs_(problem.variables), ends_(problem.variables.size()) {
    for (const auto& costs : costs_)
      least_.emplace_back(costs.size(), 0.0);
    for (const PairwiseProblem::Edge& edge : problem.edges) {
      const size_t index = tables_.size();
      ends_[static_cast<size_t>(edge.a)].push_back({index, /*is_a=*/true});
      ends_[static_cast<size_t>(edge.b)].push_back({index, /*is_a=*/false});
      tables_.push_back(edge.costs);
    }
    for (size_t variable = 0; variable < costs_.size(); ++variable)
      TakeLeast(variable);
  }

  double bound() const { return bound_; }
  /// Choices that contain this one cost at least as much: what the rounds so far showed.
  const std::vector<std::vector<double>>& least() const { return least_; }

  /// Changes the price of a row, per unit of its weights.
  void AddPrice(const PairwiseProblem::Row& row, double change) {
    bound_ -= change * row.limit;
    for (const auto& term : row.terms) {
      auto& costs = costs_[static_cast<size_t>(term.variable)];
      for (size_t choice = 0; choice < costs.size(); ++choice)
        costs[choice] += change * term.weights[choice];
      TakeLeast(static_cast<size_t>(term.variable));
    }
  }

  /// Visits the variables in order, or back. Rules out what costs `limit` or more. Choices: the
  /// cheapest of each variable, given those before.
  Choices Round(bool is_forward, double limit) {
    Choices choices(costs_.size(), -1);
    for (size_t i = 0; i < costs_.size(); ++i) {
      const size_t variable = is_forward ? i : costs_.size() - 1 - i;
      choices[variable] = Cheapest(variable, choices);
      Collect(variable);
      RuleOut(variable, limit);
      if (!std::isinf(bound_)) Distribute(variable, is_forward);
    }
    return choices;
  }

 private:
  struct End {
    size_t edge;
    bool is_a;
  };
  struct Side {
    const std::vector<int>& class_of;
    int count, others;
    size_t step, other_step;  // between classes of this side and of the other, in the table
    int other;                // variable
  };
  Side SideOf(End end) const {
    const PairwiseProblem::Edge& edge = problem_.edges[end.edge];
    const auto line = static_cast<size_t>(edge.num_b);
    return end.is_a ? Side{edge.class_a, edge.num_a, edge.num_b, line, 1, edge.b}
                    : Side{edge.class_b, edge.num_b, edge.num_a, 1, line, edge.a};
  }

  std::vector<double> LeastOfClasses(End end) const {
    const Side side = SideOf(end);
    const double* table = tables_[end.edge].data();
    std::vector<double> least(static_cast<size_t>(side.count), kInfiniteCost);
    for (size_t k = 0; k < least.size(); ++k)
      for (size_t l = 0; l < static_cast<size_t>(side.others); ++l)
        least[k] = std::min(least[k], table[k * side.step + l * side.other_step]);
    return least;
  }

  /// Moves what a class costs at least, whatever the other end is, out of the table of an edge;
  /// with a negative sign: into it.
  void Take(End end, const std::vector<double>& amounts) {
    const Side side = SideOf(end);
    double* table = tables_[end.edge].data();
    for (size_t k = 0; k < amounts.size(); ++k) {
      if (amounts[k] == 0 || amounts[k] == kInfiniteCost) continue;
      for (size_t l = 0; l < static_cast<size_t>(side.others); ++l) {
        double& cost = table[k * side.step + l * side.other_step];
        cost = std::max(0.0, cost - amounts[k]);  // not below zero by rounding
      }
    }
  }

  void TakeLeast(size_t variable) {
    const double least = *std::ranges::min_element(costs_[variable]);
    bound_ += least;
    if (std::isinf(least)) return;
    for (double& cost : costs_[variable])
      cost -= least;
  }

  void Collect(size_t variable) {
    auto& costs = costs_[variable];
    for (const End end : ends_[variable]) {
      const std::vector<double> least = LeastOfClasses(end);
      Take(end, least);
      const Side side = SideOf(end);
      for (size_t choice = 0; choice < costs.size(); ++choice)
        costs[choice] += least[static_cast<size_t>(side.class_of[choice])];
    }
    TakeLeast(variable);
  }

  void RuleOut(size_t variable, double limit) {
    for (size_t choice = 0; choice < costs_[variable].size(); ++choice) {
      double& cost = costs_[variable][choice];
      double& least = least_[variable][choice];
      least = std::max(least, bound_ + cost);
      if (least >= limit) cost = least = kInfiniteCost;
    }
  }

  bool IsAhead(size_t variable, End end, bool is_forward) const {
    return (static_cast<size_t>(SideOf(end).other) > variable) == is_forward;
  }

  /// Shares the costs of a variable among its edges to variables that come later.
  void Distribute(size_t variable, bool is_forward) {
    auto& costs = costs_[variable];
    const auto ahead = static_cast<size_t>(std::ranges::count_if(
        ends_[variable], [&](End e) { return IsAhead(variable, e, is_forward); }));
    size_t shares = std::max(ahead, ends_[variable].size() - ahead);
    for (const End end : ends_[variable]) {
      if (!IsAhead(variable, end, is_forward)) continue;
      const Side side = SideOf(end);
      std::vector<double> amounts(static_cast<size_t>(side.count), kInfiniteCost);
      for (size_t choice = 0; choice < costs.size(); ++choice) {
        double& amount = amounts[static_cast<size_t>(side.class_of[choice])];
        amount = std::min(amount, costs[choice]);
      }
      for (double& amount : amounts)
        amount = -amount / static_cast<double>(shares);
      Take(end, amounts);  // of a class without choices: infinite
      for (size_t choice = 0; choice < costs.size(); ++choice)
        if (!std::isinf(costs[choice]))
          costs[choice] =
              std::max(0.0, costs[choice] + amounts[static_cast<size_t>(side.class_of[choice])]);
      --shares;
    }
  }

  int Cheapest(size_t variable, const Choices& choices) const {
    std::vector<double> costs = costs_[variable];
    for (const End end : ends_[variable]) {
      const Side side = SideOf(end);
      const int chosen = choices[static_cast<size_t>(side.other)];
      std::vector<double> of_class;
      if (chosen < 0) {
        of_class = LeastOfClasses(end);
      } else {
        const PairwiseProblem::Edge& edge = problem_.edges[end.edge];
        const auto other = static_cast<size_t>(
            (end.is_a ? edge.class_b : edge.class_a)[static_cast<size_t>(chosen)]);
        for (size_t k = 0; k < static_cast<size_t>(side.count); ++k)
          of_class.push_back(tables_[end.edge][k * side.step + other * side.other_step]);
      }
      for (size_t choice = 0; choice < costs.size(); ++choice)
        costs[choice] += of_class[static_cast<size_t>(side.class_of[choice])];
    }
    return static_cast<int>(std::ranges::min_element(costs) - costs.begin());
  }

  const PairwiseProblem& problem_;
  std::vector<std::vector<double>> costs_, least_, tables_;
  std::vector<std::vector<End>> ends_;  // of each variable
  double bound_ = 0;
};

class BoundsSearch {
 public:
  BoundsSearch(const PairwiseProblem& problem, const BoundsOptions& options)
      : problem_(problem), options_(options), moved_(problem), watch_(options.clock) {
    bounds_.bound = moved_.bound();
    bounds_.cost = options.known_cost;
  }

  Bounds Run() {
    for (size_t i = 0; i < options_.prices.size(); ++i)
      moved_.AddPrice(problem_.rows[i], options_.prices[i]);
    std::vector<const Row*> violated;
    const Choices free = Improve(/*price=*/nullptr, 0);
    for (const Row& row : problem_.rows)
      if (row.Sum(free) > row.limit * (1 + kRounding)) violated.push_back(&row);
    if (options_.prices.empty())
      for (const Row* row : violated)
        FindPrice(*row);
    bounds_.bound = std::min(bounds_.bound, bounds_.cost);
    bounds_.least = moved_.least();
    return std::move(bounds_);
  }

 private:
  using Row = PairwiseProblem::Row;

  bool IsLate() const { return watch_.seconds() > options_.seconds; }

  /// Rounds until the bound hardly grows. Choices: the cheapest with this row priced.
  Choices Improve(const Row* row, double price) {
    Choices best(problem_.variables.size(), 0);
    double least = kInfiniteCost;
    for (int round = 0; round < options_.rounds && !IsLate(); ++round) {
      const double before = moved_.bound();
      options_.clock->Count(8 * problem_.NumEntries());
      const Choices choices =
          moved_.Round(/*is_forward=*/round % 2 == 0, bounds_.cost * (1 - kRounding));
      KeepBound();
      if (std::isinf(moved_.bound())) break;
      double cost = problem_.Cost(choices);
      if (row != nullptr) cost += price * row->Sum(choices);
      if (cost < least) {
        least = cost;
        best = choices;
        Offer(choices);
      }
      if (round >= 8 && moved_.bound() - before <= 1e-7 * std::abs(before)) break;
    }
    return best;
  }

  void KeepBound() {
    bounds_.bound = std::max(bounds_.bound, std::min(moved_.bound(), bounds_.cost));
  }

  void Offer(Choices choices) {
    if (!problem_.Satisfies(choices)) return;
    ImproveChoices(problem_, choices);
    const double cost = problem_.Cost(choices);
    if (cost >= bounds_.cost) return;
    bounds_.cost = cost;
    bounds_.choices = std::move(choices);
  }

  /// The price at which the cheapest choices just satisfy the row.
  void FindPrice(const Row& row) {
    double low = 0, high = kInfiniteCost, now = 0;
    double next = 1e-3 * std::abs(bounds_.bound) / std::max(row.limit, 1e-12);
    constexpr int kSteps = 24;
    for (int step = 0; step < kSteps && !IsLate() && !std::isinf(moved_.bound()); ++step) {
      moved_.AddPrice(row, next - now);
      now = next;
      const Choices choices = Improve(&row, now);
      (row.Sum(choices) > row.limit ? low : high) = now;
      if (high - low <= 1e-3 * high) break;
      next = std::isinf(high) ? next * 4 : (low + high) / 2;
    }
  }

  const PairwiseProblem& problem_;
  const BoundsOptions options_;
  MovedCosts moved_;
  Bounds bounds_;
  const WorkWatch watch_;
};

/// Numbers the classes of the choices that are left.
int Renumber(const std::vector<int>& class_of, const std::vector<int>& choices, int count,
             std::vector<int>& new_class_of, std::vector<int>& old_classes) {
  std::vector<int> number(static_cast<size_t>(count), -1);
  for (const int choice : choices) {
    int& of_class = number[static_cast<size_t>(class_of[static_cast<size_t>(choice)])];
    if (of_class < 0) {
      of_class = static_cast<int>(old_classes.size());
      old_classes.push_back(class_of[static_cast<size_t>(choice)]);
    }
    new_class_of.push_back(of_class);
  }
  return static_cast<int>(old_classes.size());
}

}  // namespace

Bounds FindBounds(const PairwiseProblem& problem, const BoundsOptions& options) {
  return BoundsSearch(problem, options).Run();
}

std::vector<std::vector<bool>> Bounds::IsLeft(double most) const {
  std::vector<std::vector<bool>> is_left;
  for (const auto& of_choice : least) {
    is_left.emplace_back();
    for (const double each : of_choice)
      is_left.back().push_back(each <= most && each < cost * (1 - kRounding));
  }
  return is_left;
}

Restriction Restrict(const PairwiseProblem& problem,
                     const std::vector<std::vector<bool>>& is_left) {
  Restriction made;
  for (size_t variable = 0; variable < is_left.size(); ++variable) {
    made.choices_of.emplace_back();
    made.problem.variables.emplace_back();
    for (size_t choice = 0; choice < is_left[variable].size(); ++choice) {
      if (!is_left[variable][choice]) continue;
      made.choices_of.back().push_back(static_cast<int>(choice));
      made.problem.variables.back().push_back(problem.variables[variable][choice]);
    }
  }
  for (const PairwiseProblem::Edge& old : problem.edges) {
    PairwiseProblem::Edge edge{.a = old.a, .b = old.b, .class_a = {}, .class_b = {}, .costs = {}};
    std::vector<int> old_a, old_b;
    edge.num_a = Renumber(old.class_a, made.choices_of[static_cast<size_t>(old.a)], old.num_a,
                          edge.class_a, old_a);
    edge.num_b = Renumber(old.class_b, made.choices_of[static_cast<size_t>(old.b)], old.num_b,
                          edge.class_b, old_b);
    for (const int i : old_a)
      for (const int j : old_b)
        edge.costs.push_back(old.costs[static_cast<size_t>(i * old.num_b + j)]);
    made.problem.edges.push_back(std::move(edge));
  }
  for (PairwiseProblem::Row row : problem.rows) {
    for (auto& term : row.terms) {
      std::vector<double> weights;
      for (const int choice : made.choices_of[static_cast<size_t>(term.variable)])
        weights.push_back(term.weights[static_cast<size_t>(choice)]);
      term.weights = std::move(weights);
    }
    made.problem.rows.push_back(std::move(row));
  }
  return made;
}

Choices Restriction::Expand(const Choices& restricted) const {
  Choices choices;
  for (size_t variable = 0; variable < choices_of.size(); ++variable)
    choices.push_back(choices_of[variable][static_cast<size_t>(restricted[variable])]);
  return choices;
}

}  // namespace strata

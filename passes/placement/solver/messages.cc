#include "passes/placement/solver/messages.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace strata {
namespace {

// Stands for what is forbidden, so that differences stay numbers.
constexpr double kForbidden = 1e15;

double Finite(double cost) {
  return std::min(cost, kForbidden);
}

class Passing {
 public:
  explicit Passing(const PairwiseProblem& problem)
      : problem_(problem), beliefs_(problem.variables), edges_of_(problem.variables.size()) {
    for (auto& costs : beliefs_)
      std::ranges::transform(costs, costs.begin(), Finite);
    for (const PairwiseProblem::Edge& edge : problem.edges) {
      edges_of_[static_cast<size_t>(edge.a)].push_back(to_a_.size());
      edges_of_[static_cast<size_t>(edge.b)].push_back(to_a_.size());
      to_a_.emplace_back(edge.class_a.size());
      to_b_.emplace_back(edge.class_b.size());
    }
  }

  void Round() {
    for (size_t e = 0; e < problem_.edges.size(); ++e)
      Update(e);
  }

  double Bound() const {
    double bound = 0;
    for (const auto& belief : beliefs_)
      bound += *std::ranges::min_element(belief);
    for (size_t e = 0; e < problem_.edges.size(); ++e) {
      const PairwiseProblem::Edge& edge = problem_.edges[e];
      double least = kForbidden;
      for (size_t i = 0; i < edge.class_a.size(); ++i)
        for (size_t j = 0; j < edge.class_b.size(); ++j)
          least = std::min(least, Cost(edge, i, j) - to_a_[e][i] - to_b_[e][j]);
      bound += least;
    }
    return bound;
  }

  /// One variable after the other, given those before.
  PairwiseProblem::Choices Choices() const {
    PairwiseProblem::Choices choices(beliefs_.size(), 0);
    for (size_t variable = 0; variable < beliefs_.size(); ++variable) {
      std::vector<double> costs = beliefs_[variable];
      for (const size_t e : edges_of_[variable]) {
        const PairwiseProblem::Edge& edge = problem_.edges[e];
        const bool is_a = static_cast<size_t>(edge.a) == variable;
        const auto other = static_cast<size_t>(is_a ? edge.b : edge.a);
        if (other >= variable) continue;
        const auto chosen = static_cast<size_t>(choices[other]);
        for (size_t i = 0; i < costs.size(); ++i)
          costs[i] +=
              is_a ? Cost(edge, i, chosen) - to_a_[e][i] : Cost(edge, chosen, i) - to_b_[e][i];
      }
      choices[variable] = static_cast<int>(std::ranges::min_element(costs) - costs.begin());
    }
    return choices;
  }

 private:
  static double Cost(const PairwiseProblem::Edge& edge, size_t i, size_t j) {
    return Finite(edge.cost(static_cast<int>(i), static_cast<int>(j)));
  }

  void Update(size_t e) {
    const PairwiseProblem::Edge& edge = problem_.edges[e];
    auto &a = beliefs_[static_cast<size_t>(edge.a)], &b = beliefs_[static_cast<size_t>(edge.b)];
    for (size_t i = 0; i < a.size(); ++i)
      a[i] -= to_a_[e][i];
    for (size_t j = 0; j < b.size(); ++j)
      b[j] -= to_b_[e][j];
    std::vector<double> least_a(a.size(), 2 * kForbidden), least_b(b.size(), 2 * kForbidden);
    for (size_t i = 0; i < a.size(); ++i) {
      for (size_t j = 0; j < b.size(); ++j) {
        const double cost = Cost(edge, i, j);
        least_a[i] = std::min(least_a[i], cost + b[j]);
        least_b[j] = std::min(least_b[j], cost + a[i]);
      }
    }
    for (size_t i = 0; i < a.size(); ++i) {
      to_a_[e][i] = (least_a[i] - a[i]) / 2;
      a[i] += to_a_[e][i];
    }
    for (size_t j = 0; j < b.size(); ++j) {
      to_b_[e][j] = (least_b[j] - b[j]) / 2;
      b[j] += to_b_[e][j];
    }
  }

  const PairwiseProblem& problem_;
  std::vector<std::vector<double>> beliefs_;
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<std::vector<double>> to_a_, to_b_;  // messages of each edge, by choice
};

}  // namespace

MessageResult PassMessages(const PairwiseProblem& problem, int rounds) {
  Passing passing(problem);
  MessageResult result{.choices = passing.Choices(), .bound = passing.Bound()};
  double cost = problem.Cost(result.choices);
  for (int round = 0; round < rounds; ++round) {
    passing.Round();
    const double bound = passing.Bound();
    PairwiseProblem::Choices choices = passing.Choices();
    if (const double now = problem.Cost(choices); now < cost) {
      cost = now;
      result.choices = std::move(choices);
    }
    const bool is_slow = bound - result.bound < 1e-9 * std::abs(bound);
    result.bound = std::max(result.bound, bound);
    if (is_slow && round > 0) break;
  }
  return result;
}

}  // namespace strata

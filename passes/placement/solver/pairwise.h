#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// Of a choice that is ruled out.
inline constexpr double kInfiniteCost = std::numeric_limits<double>::infinity();

/// min Σ cost of choices + Σ cost of pairs of choices, one choice for each variable, subject to
/// linear rows. Costs are not negative; infinite ones forbid.
struct PairwiseProblem {
  using Choices = std::vector<int>;  ///< the choice of each variable

  /// Choices of `a` that belong to one class cost the same, whatever `b` is; likewise of `b`.
  struct Edge {
    int a = 0, b = 0;
    std::vector<int> class_a, class_b;  ///< of each choice
    int num_a = 0, num_b = 0;           ///< classes
    std::vector<double> costs;          ///< [num_a, num_b]

    double cost(int choice_a, int choice_b) const {
      return costs[static_cast<size_t>(class_a[static_cast<size_t>(choice_a)] * num_b +
                                       class_b[static_cast<size_t>(choice_b)])];
    }
  };
  /// Σ weights ≤ limit.
  struct Row {
    struct Term {
      int variable;
      std::vector<double> weights;  ///< of each choice
    };
    std::string name;
    std::vector<Term> terms;
    double limit = std::numeric_limits<double>::infinity();

    double Sum(const Choices& choices) const;
  };

  std::vector<std::vector<double>> variables;  ///< cost of each choice
  std::vector<Edge> edges;
  std::vector<Row> rows;

  double Cost(const Choices& choices) const;  ///< without rows
  bool Satisfies(const Choices& choices) const;
  /// Costs of choices, and of pairs of classes.
  double NumEntries() const;
};

/// Merges classes whose costs are equal.
void Compress(PairwiseProblem::Edge& edge);

}  // namespace strata

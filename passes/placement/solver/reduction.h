#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "passes/placement/solver/pairwise.h"

namespace strata {

/// A smaller problem with the same least cost: choices that no neighbour allows are forbidden,
/// choices that nothing but their cost distinguishes are merged, and variables with at most two
/// neighbours, and in no row, are replaced by an edge between these. A chain of views becomes one
/// edge.
class Reduction {
 public:
  explicit Reduction(const PairwiseProblem& problem);

  /// False: some variable has no choice that its neighbours allow.
  bool is_feasible() const { return is_feasible_; }
  const PairwiseProblem& reduced() const { return reduced_; }
  double constant() const { return constant_; }  ///< to add to the cost of `reduced`

  /// The best choices of all variables, given those of the reduced problem.
  PairwiseProblem::Choices Expand(const PairwiseProblem::Choices& reduced) const;

 private:
  using Edge = PairwiseProblem::Edge;
  struct Eliminated {
    int variable;
    std::vector<Edge> edges;  ///< `a` is the variable
    std::vector<double> costs;
  };

  void AddEdge(Edge edge);
  void RemoveEdge(size_t edge);
  void Forbid();
  bool ForbidAlong(const Edge& edge, bool is_a);
  void EliminateAll();
  void Eliminate(int variable);
  void MergeChoices();
  void Collect();

  std::vector<std::vector<double>> costs_;
  std::vector<Edge> edges_;
  std::vector<std::set<size_t>> edges_of_;  // of each variable
  std::vector<bool> is_kept_, is_gone_;
  std::vector<PairwiseProblem::Row> rows_;
  std::vector<Eliminated> eliminated_;
  bool is_feasible_ = true;
  double constant_ = 0;

  PairwiseProblem reduced_;
  std::vector<int> variable_of_;              // of each reduced variable
  std::vector<std::vector<int>> choices_of_;  // of each of its choices
};

}  // namespace strata

#include "passes/placement/solver/elimination.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace strata {
namespace {

/// A cost for each choice of some variables, the last one fastest.
struct CostTable {
  std::vector<int> variables;  // ascending
  std::vector<double> costs;
};

/// In which order variables go, and who their neighbours are then.
struct Order {
  struct Step {
    int variable;
    std::vector<int> neighbours;
  };
  std::vector<Step> steps;
  double entries = 0;  // of the largest table
};

Order MakeOrder(const PairwiseProblem& problem) {
  const size_t count = problem.variables.size();
  std::vector<std::set<int>> neighbours(count);
  for (const PairwiseProblem::Edge& edge : problem.edges) {
    neighbours[static_cast<size_t>(edge.a)].insert(edge.b);
    neighbours[static_cast<size_t>(edge.b)].insert(edge.a);
  }
  const auto entries = [&](size_t variable) {
    double product = static_cast<double>(problem.variables[variable].size());
    for (const int neighbour : neighbours[variable])
      product *= static_cast<double>(problem.variables[static_cast<size_t>(neighbour)].size());
    return product;
  };
  std::set<std::pair<double, int>> queue;
  for (size_t variable = 0; variable < count; ++variable)
    queue.emplace(entries(variable), static_cast<int>(variable));
  Order order;
  while (!queue.empty()) {
    const auto [size, variable] = *queue.begin();
    queue.erase(queue.begin());
    order.entries = std::max(order.entries, size);
    const std::set<int> around = neighbours[static_cast<size_t>(variable)];
    for (const int other : around)
      queue.erase({entries(static_cast<size_t>(other)), other});
    for (const int other : around) {
      neighbours[static_cast<size_t>(other)].erase(variable);
      for (const int third : around)
        if (third != other) neighbours[static_cast<size_t>(other)].insert(third);
    }
    for (const int other : around)
      queue.emplace(entries(static_cast<size_t>(other)), other);
    order.steps.push_back({variable, {around.begin(), around.end()}});
  }
  return order;
}

class Eliminator {
 public:
  explicit Eliminator(const PairwiseProblem& problem) : problem_(problem) {
    for (size_t variable = 0; variable < problem.variables.size(); ++variable)
      tables_.push_back({{static_cast<int>(variable)}, problem.variables[variable]});
    for (const PairwiseProblem::Edge& edge : problem.edges)
      tables_.push_back(TableOf(edge));
  }

  std::optional<PairwiseProblem::Choices> Run(const Order& order) {
    std::vector<std::vector<int>> best;  // of each step, by the choices of the neighbours
    double cost = 0;
    for (const Order::Step& step : order.steps) {
      best.emplace_back();
      CostTable made = Eliminate(step, best.back());
      if (made.variables.empty()) {
        cost += made.costs[0];
      } else {
        tables_.push_back(std::move(made));
      }
    }
    if (std::isinf(cost)) return std::nullopt;
    PairwiseProblem::Choices choices(problem_.variables.size());
    for (size_t i = order.steps.size(); i-- > 0;) {
      const Order::Step& step = order.steps[i];
      choices[static_cast<size_t>(step.variable)] = best[i][Index(step.neighbours, choices)];
    }
    return choices;
  }

 private:
  size_t Size(int variable) const {
    return problem_.variables[static_cast<size_t>(variable)].size();
  }

  CostTable TableOf(const PairwiseProblem::Edge& edge) const {
    const bool in_order = edge.a < edge.b;
    CostTable table{.variables = {std::min(edge.a, edge.b), std::max(edge.a, edge.b)}, .costs = {}};
    for (size_t i = 0; i < Size(table.variables[0]); ++i)
      for (size_t j = 0; j < Size(table.variables[1]); ++j)
        table.costs.push_back(in_order ? edge.cost(static_cast<int>(i), static_cast<int>(j))
                                       : edge.cost(static_cast<int>(j), static_cast<int>(i)));
    return table;
  }

  size_t Index(const std::vector<int>& variables, const PairwiseProblem::Choices& choices) const {
    size_t index = 0;
    for (const int variable : variables)
      index = index * Size(variable) + static_cast<size_t>(choices[static_cast<size_t>(variable)]);
    return index;
  }

  CostTable Eliminate(const Order::Step& step, std::vector<int>& best) {
    std::vector<CostTable> joined;
    std::erase_if(tables_, [&](CostTable& table) {
      if (std::ranges::count(table.variables, step.variable) == 0) return false;
      joined.push_back(std::move(table));
      return true;
    });
    CostTable made{.variables = step.neighbours, .costs = {}};
    PairwiseProblem::Choices choices(problem_.variables.size());
    while (true) {
      double least = kInfiniteCost;
      int least_choice = 0;
      for (size_t choice = 0; choice < Size(step.variable); ++choice) {
        choices[static_cast<size_t>(step.variable)] = static_cast<int>(choice);
        double cost = 0;
        for (const CostTable& table : joined)
          cost += table.costs[Index(table.variables, choices)];
        if (cost >= least) continue;
        least = cost;
        least_choice = static_cast<int>(choice);
      }
      made.costs.push_back(least);
      best.push_back(least_choice);
      size_t digit = step.neighbours.size();
      while (digit-- > 0) {
        const int variable = step.neighbours[digit];
        int& choice = choices[static_cast<size_t>(variable)];
        if (static_cast<size_t>(++choice) < Size(variable)) break;
        choice = 0;
      }
      if (digit == SIZE_MAX) return made;
    }
  }

  const PairwiseProblem& problem_;
  std::vector<CostTable> tables_;
};

}  // namespace

double EliminationEntries(const PairwiseProblem& problem) {
  return MakeOrder(problem).entries;
}

std::optional<PairwiseProblem::Choices> SolveByElimination(const PairwiseProblem& problem,
                                                           double max_entries) {
  const Order order = MakeOrder(problem);
  if (order.entries > max_entries) return std::nullopt;
  return Eliminator(problem).Run(order);
}

}  // namespace strata

#include "passes/placement/solver/reduction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace strata {
namespace {

/// With `variable` as `a`.
PairwiseProblem::Edge FromSide(PairwiseProblem::Edge edge, int variable) {
  if (edge.a == variable) return edge;
  std::vector<double> costs(edge.costs.size());
  for (int i = 0; i < edge.num_a; ++i)
    for (int j = 0; j < edge.num_b; ++j)
      costs[static_cast<size_t>(j * edge.num_a + i)] =
          edge.costs[static_cast<size_t>(i * edge.num_b + j)];
  std::swap(edge.a, edge.b);
  std::swap(edge.class_a, edge.class_b);
  std::swap(edge.num_a, edge.num_b);
  edge.costs = std::move(costs);
  return edge;
}

/// Numbers pairs of classes.
std::vector<int> Pairs(const std::vector<int>& first, const std::vector<int>& second,
                       std::vector<std::pair<int, int>>& pairs) {
  std::map<std::pair<int, int>, int> numbers;
  std::vector<int> number_of;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto [found, is_new] =
        numbers.try_emplace({first[i], second[i]}, static_cast<int>(pairs.size()));
    if (is_new) pairs.emplace_back(first[i], second[i]);
    number_of.push_back(found->second);
  }
  return number_of;
}

/// One edge for two between the same variables.
PairwiseProblem::Edge Sum(const PairwiseProblem::Edge& first, const PairwiseProblem::Edge& second) {
  std::vector<std::pair<int, int>> a, b;
  PairwiseProblem::Edge sum;
  sum.a = first.a;
  sum.b = first.b;
  sum.class_a = Pairs(first.class_a, second.class_a, a);
  sum.class_b = Pairs(first.class_b, second.class_b, b);
  sum.num_a = static_cast<int>(a.size());
  sum.num_b = static_cast<int>(b.size());
  for (const auto& [i, k] : a)
    for (const auto& [j, l] : b)
      sum.costs.push_back(first.costs[static_cast<size_t>(i * first.num_b + j)] +
                          second.costs[static_cast<size_t>(k * second.num_b + l)]);
  return sum;
}

/// The edge between the neighbours of a variable of `costs`, which both edges have as `a`.
PairwiseProblem::Edge Join(const PairwiseProblem::Edge& left, const PairwiseProblem::Edge& right,
                           const std::vector<double>& costs) {
  std::map<std::pair<int, int>, double> least;  // by classes of the choice that is left out
  for (size_t choice = 0; choice < costs.size(); ++choice) {
    if (std::isinf(costs[choice])) continue;
    const auto [found, is_new] =
        least.try_emplace({left.class_a[choice], right.class_a[choice]}, costs[choice]);
    if (!is_new) found->second = std::min(found->second, costs[choice]);
  }
  PairwiseProblem::Edge edge{.a = left.b,
                             .b = right.b,
                             .class_a = left.class_b,
                             .class_b = right.class_b,
                             .num_a = left.num_b,
                             .num_b = right.num_b,
                             .costs = {}};
  edge.costs.assign(static_cast<size_t>(edge.num_a * edge.num_b), kInfiniteCost);
  for (const auto& [classes, cost] : least) {
    const double* to_a = &left.costs[static_cast<size_t>(classes.first * left.num_b)];
    const double* to_b = &right.costs[static_cast<size_t>(classes.second * right.num_b)];
    for (int i = 0; i < edge.num_a; ++i) {
      const double so_far = to_a[i] + cost;
      if (std::isinf(so_far)) continue;
      double* line = &edge.costs[static_cast<size_t>(i * edge.num_b)];
      for (int j = 0; j < edge.num_b; ++j)
        line[j] = std::min(line[j], so_far + to_b[j]);
    }
  }
  return edge;
}

}  // namespace

Reduction::Reduction(const PairwiseProblem& problem)
    : costs_(problem.variables),
      edges_of_(problem.variables.size()),
      is_kept_(problem.variables.size()),
      is_gone_(problem.variables.size()),
      rows_(problem.rows) {
  for (const PairwiseProblem::Row& row : rows_)
    for (const auto& term : row.terms)
      is_kept_[static_cast<size_t>(term.variable)] = true;
  for (const Edge& edge : problem.edges)
    AddEdge(edge);
  Forbid();
  if (!is_feasible_) return;
  EliminateAll();
  MergeChoices();
  Collect();
}

void Reduction::AddEdge(Edge edge) {
  Compress(edge);
  if (edge.num_a == 1 && edge.num_b == 1 && !std::isinf(edge.costs[0])) {
    constant_ += edge.costs[0];
    return;
  }
  if (edge.num_b == 1) {  // says nothing of b
    auto& costs = costs_[static_cast<size_t>(edge.a)];
    for (size_t choice = 0; choice < costs.size(); ++choice)
      costs[choice] += edge.costs[static_cast<size_t>(edge.class_a[choice])];
    return;
  }
  if (edge.num_a == 1) return AddEdge(FromSide(std::move(edge), edge.b));
  for (const size_t other : edges_of_[static_cast<size_t>(edge.a)]) {
    if (edges_[other].a != edge.b && edges_[other].b != edge.b) continue;
    Edge sum = Sum(FromSide(edges_[other], edge.a), edge);
    RemoveEdge(other);
    return AddEdge(std::move(sum));
  }
  edges_of_[static_cast<size_t>(edge.a)].insert(edges_.size());
  edges_of_[static_cast<size_t>(edge.b)].insert(edges_.size());
  edges_.push_back(std::move(edge));
}

void Reduction::RemoveEdge(size_t edge) {
  edges_of_[static_cast<size_t>(edges_[edge].a)].erase(edge);
  edges_of_[static_cast<size_t>(edges_[edge].b)].erase(edge);
}

bool Reduction::ForbidAlong(const Edge& given, bool is_a) {
  const Edge edge = FromSide(given, is_a ? given.a : given.b);
  auto& costs = costs_[static_cast<size_t>(edge.a)];
  const auto& others = costs_[static_cast<size_t>(edge.b)];
  std::vector<bool> allowed_b(static_cast<size_t>(edge.num_b));
  for (size_t choice = 0; choice < others.size(); ++choice)
    if (!std::isinf(others[choice])) allowed_b[static_cast<size_t>(edge.class_b[choice])] = true;
  bool has_changed = false;
  for (size_t choice = 0; choice < costs.size(); ++choice) {
    if (std::isinf(costs[choice])) continue;
    bool is_allowed = false;
    for (int j = 0; j < edge.num_b && !is_allowed; ++j)
      is_allowed =
          allowed_b[static_cast<size_t>(j)] &&
          !std::isinf(edge.costs[static_cast<size_t>(edge.class_a[choice] * edge.num_b + j)]);
    if (is_allowed) continue;
    costs[choice] = kInfiniteCost;
    has_changed = true;
  }
  return has_changed;
}

void Reduction::Forbid() {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (size_t variable = 0; variable < costs_.size(); ++variable) {
      for (const size_t edge : edges_of_[variable]) {
        has_changed =
            ForbidAlong(edges_[edge], edges_[edge].a == static_cast<int>(variable)) || has_changed;
      }
    }
  }
  for (const auto& costs : costs_)
    is_feasible_ =
        is_feasible_ && std::ranges::any_of(costs, [](double c) { return !std::isinf(c); });
}

void Reduction::EliminateAll() {
  std::set<std::pair<size_t, int>> queue;  // (neighbours, variable)
  const auto add = [&](int variable) {
    const size_t degree = edges_of_[static_cast<size_t>(variable)].size();
    if (degree <= 2 && !is_kept_[static_cast<size_t>(variable)]) queue.emplace(degree, variable);
  };
  for (size_t variable = 0; variable < costs_.size(); ++variable)
    add(static_cast<int>(variable));
  while (!queue.empty()) {
    const auto [degree, variable] = *queue.begin();
    queue.erase(queue.begin());
    if (is_gone_[static_cast<size_t>(variable)]) continue;
    std::vector<int> neighbours;
    for (const size_t edge : edges_of_[static_cast<size_t>(variable)])
      neighbours.push_back(edges_[edge].a == variable ? edges_[edge].b : edges_[edge].a);
    if (neighbours.size() > 2) continue;  // from before another elimination
    Eliminate(variable);
    for (const int neighbour : neighbours)
      add(neighbour);
  }
}

void Reduction::Eliminate(int variable) {
  const auto index = static_cast<size_t>(variable);
  Eliminated record{.variable = variable, .edges = {}, .costs = costs_[index]};
  while (!edges_of_[index].empty()) {
    const size_t edge = *edges_of_[index].begin();
    record.edges.push_back(FromSide(edges_[edge], variable));
    RemoveEdge(edge);
  }
  is_gone_[index] = true;
  if (record.edges.empty()) {
    constant_ += *std::ranges::min_element(record.costs);
  } else if (record.edges.size() == 1) {
    const Edge& edge = record.edges[0];
    std::vector<double> least(static_cast<size_t>(edge.num_b), kInfiniteCost);
    for (size_t choice = 0; choice < record.costs.size(); ++choice)
      for (int j = 0; j < edge.num_b; ++j)
        least[static_cast<size_t>(j)] =
            std::min(least[static_cast<size_t>(j)],
                     record.costs[choice] +
                         edge.costs[static_cast<size_t>(edge.class_a[choice] * edge.num_b + j)]);
    auto& costs = costs_[static_cast<size_t>(edge.b)];
    for (size_t choice = 0; choice < costs.size(); ++choice)
      costs[choice] += least[static_cast<size_t>(edge.class_b[choice])];
  } else {
    AddEdge(Join(record.edges[0], record.edges[1], record.costs));
  }
  eliminated_.push_back(std::move(record));
}

void Reduction::MergeChoices() {
  std::vector<std::vector<const std::vector<double>*>> weights(costs_.size());
  for (const PairwiseProblem::Row& row : rows_)
    for (const auto& term : row.terms)
      weights[static_cast<size_t>(term.variable)].push_back(&term.weights);
  for (size_t variable = 0; variable < costs_.size(); ++variable) {
    if (is_gone_[variable]) continue;
    std::map<std::pair<std::vector<int>, std::vector<double>>, int> best;
    for (size_t choice = 0; choice < costs_[variable].size(); ++choice) {
      if (std::isinf(costs_[variable][choice])) continue;
      std::vector<int> classes;
      for (const size_t edge : edges_of_[variable])
        classes.push_back(edges_[edge].a == static_cast<int>(variable)
                              ? edges_[edge].class_a[choice]
                              : edges_[edge].class_b[choice]);
      std::vector<double> weight;
      for (const auto* of_row : weights[variable])
        weight.push_back((*of_row)[choice]);
      const auto [found, is_new] =
          best.try_emplace({std::move(classes), std::move(weight)}, static_cast<int>(choice));
      const auto old = static_cast<size_t>(found->second);
      if (!is_new && costs_[variable][choice] < costs_[variable][old])
        found->second = static_cast<int>(choice);
    }
    std::vector<int> choices;
    for (const auto& [signature, choice] : best)
      choices.push_back(choice);
    std::ranges::sort(choices);
    variable_of_.push_back(static_cast<int>(variable));
    choices_of_.push_back(std::move(choices));
  }
}

void Reduction::Collect() {
  std::map<int, int> index_of;
  for (size_t i = 0; i < variable_of_.size(); ++i) {
    index_of[variable_of_[i]] = static_cast<int>(i);
    std::vector<double> costs;
    for (const int choice : choices_of_[i])
      costs.push_back(costs_[static_cast<size_t>(variable_of_[i])][static_cast<size_t>(choice)]);
    reduced_.variables.push_back(std::move(costs));
  }
  const auto pick = [&]<class T>(const std::vector<T>& of_all, int variable) {
    std::vector<T> picked;
    for (const int choice : choices_of_[static_cast<size_t>(variable)])
      picked.push_back(of_all[static_cast<size_t>(choice)]);
    return picked;
  };
  for (size_t edge = 0; edge < edges_.size(); ++edge) {
    if (!edges_of_[static_cast<size_t>(edges_[edge].a)].contains(edge)) continue;
    Edge copy = edges_[edge];
    copy.a = index_of.at(edges_[edge].a);
    copy.b = index_of.at(edges_[edge].b);
    copy.class_a = pick(edges_[edge].class_a, copy.a);
    copy.class_b = pick(edges_[edge].class_b, copy.b);
    reduced_.edges.push_back(std::move(copy));
  }
  for (PairwiseProblem::Row row : rows_) {
    for (auto& term : row.terms) {
      term.variable = index_of.at(term.variable);
      term.weights = pick(term.weights, term.variable);
    }
    reduced_.rows.push_back(std::move(row));
  }
}

PairwiseProblem::Choices Reduction::Expand(const PairwiseProblem::Choices& reduced) const {
  PairwiseProblem::Choices choices(costs_.size());
  for (size_t i = 0; i < variable_of_.size(); ++i)
    choices[static_cast<size_t>(variable_of_[i])] = choices_of_[i][static_cast<size_t>(reduced[i])];
  for (size_t i = eliminated_.size(); i-- > 0;) {
    const Eliminated& record = eliminated_[i];
    double least = kInfiniteCost;
    for (size_t choice = 0; choice < record.costs.size(); ++choice) {
      double cost = record.costs[choice];
      for (const Edge& edge : record.edges)
        cost += edge.cost(static_cast<int>(choice), choices[static_cast<size_t>(edge.b)]);
      if (cost >= least) continue;
      least = cost;
      choices[static_cast<size_t>(record.variable)] = static_cast<int>(choice);
    }
  }
  return choices;
}

}  // namespace strata

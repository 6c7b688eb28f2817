#include "passes/placement/solver/pairwise.h"

#include <algorithm>
#include <map>

namespace strata {
namespace {

size_t At(const PairwiseProblem::Choices& choices, int variable) {
  return static_cast<size_t>(choices[static_cast<size_t>(variable)]);
}

/// Numbers the distinct ones of `lines`, in order of appearance.
std::vector<int> Number(const std::vector<std::vector<double>>& lines, int& count) {
  std::map<std::vector<double>, int> numbers;
  std::vector<int> number_of;
  for (const std::vector<double>& line : lines)
    number_of.push_back(numbers.emplace(line, static_cast<int>(numbers.size())).first->second);
  count = static_cast<int>(numbers.size());
  return number_of;
}

}  // namespace

double PairwiseProblem::Row::Sum(const Choices& choices) const {
  double sum = 0;
  for (const Term& term : terms)
    sum += term.weights[At(choices, term.variable)];
  return sum;
}

double PairwiseProblem::Cost(const Choices& choices) const {
  double cost = 0;
  for (size_t i = 0; i < variables.size(); ++i)
    cost += variables[i][static_cast<size_t>(choices[i])];
  for (const Edge& edge : edges)
    cost += edge.cost(choices[static_cast<size_t>(edge.a)], choices[static_cast<size_t>(edge.b)]);
  return cost;
}

bool PairwiseProblem::Satisfies(const Choices& choices) const {
  return std::ranges::all_of(
      rows, [&](const Row& row) { return row.Sum(choices) <= row.limit * (1 + 1e-9); });
}

double PairwiseProblem::NumEntries() const {
  double entries = 0;
  for (const auto& costs : variables)
    entries += static_cast<double>(costs.size());
  for (const Edge& edge : edges)
    entries += static_cast<double>(edge.costs.size());
  return entries;
}

void Compress(PairwiseProblem::Edge& edge) {
  const auto rows = static_cast<size_t>(edge.num_a), columns = static_cast<size_t>(edge.num_b);
  std::vector<std::vector<double>> lines(rows), transposed(columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      lines[i].push_back(edge.costs[i * columns + j]);
      transposed[j].push_back(edge.costs[i * columns + j]);
    }
  }
  int num_a = 0, num_b = 0;
  const std::vector<int> new_a = Number(lines, num_a), new_b = Number(transposed, num_b);
  std::vector<double> costs(static_cast<size_t>(num_a * num_b));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      costs[static_cast<size_t>(new_a[i] * num_b + new_b[j])] = edge.costs[i * columns + j];
  for (int& number : edge.class_a)
    number = new_a[static_cast<size_t>(number)];
  for (int& number : edge.class_b)
    number = new_b[static_cast<size_t>(number)];
  edge.num_a = num_a;
  edge.num_b = num_b;
  edge.costs = std::move(costs);
}

}  // namespace strata

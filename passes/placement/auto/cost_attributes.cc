#include "passes/placement/auto/cost_attributes.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/placement/auto/explain.h"
#include "passes/placement/costs/placed_cost.h"

namespace strata {
namespace {

/// Of each variable; "": nothing else is possible.
std::vector<std::string> Instead(const Module& module, const AutoPlacement& placement) {
  const PairwiseProblem& problem = placement.space.problem;
  std::vector<std::vector<const PairwiseProblem::Edge*>> edges_of(problem.variables.size());
  for (const PairwiseProblem::Edge& edge : problem.edges) {
    edges_of[static_cast<size_t>(edge.a)].push_back(&edge);
    if (edge.b != edge.a) edges_of[static_cast<size_t>(edge.b)].push_back(&edge);
  }
  PairwiseProblem::Choices choices = placement.solved.choices;
  const auto cost_here = [&](size_t variable, int choice) {
    choices[variable] = choice;
    double cost = problem.variables[variable][static_cast<size_t>(choice)];
    for (const PairwiseProblem::Edge* edge : edges_of[variable])
      cost +=
          edge->cost(choices[static_cast<size_t>(edge->a)], choices[static_cast<size_t>(edge->b)]);
    choices[variable] = placement.solved.choices[variable];
    return cost;
  };
  std::vector<std::string> texts(problem.variables.size());
  for (size_t i = 0; i < problem.variables.size(); ++i) {
    const SearchSpace::Variable& variable = placement.space.variables[i];
    const double chosen = cost_here(i, choices[i]);
    int best = -1;
    double more = kInfiniteCost;
    for (int choice = 0; choice < std::ssize(variable.strategies); ++choice) {
      if (choice == choices[i]) continue;
      const double cost = cost_here(i, choice) - chosen;
      if (cost < more) {
        best = choice;
        more = cost;
      }
    }
    if (best < 0) continue;
    texts[i] = fmt::format("{}: +{:.3f} µs",
                           StrategyText(module, variable.strategies[static_cast<size_t>(best)]),
                           more / static_cast<double>(variable.count));
  }
  return texts;
}

}  // namespace

Status WriteCostAttributes(Graph& graph, const AutoPlacement& placement, const CostModel& model) {
  STRATA_TRY(const PlacedCost cost, CostOfPlaced(graph, model));
  Rewriter rewriter(graph);
  const auto write = [&](NodeId node, std::string_view key, double us) {
    if (us >= 0.0005) rewriter.SetAttribute(node, key, fmt::format("{:.3f}", us));
  };
  for (const PlacedCost::Item& item : cost.items) {
    write(item.node, kComputeAttribute, item.compute_us);
    write(item.node, kCommunicationAttribute, item.communication_us);
  }
  const std::vector<std::string> instead = Instead(graph.module(), placement);
  for (const auto& [node, variable] : placement.space.variable_of) {
    const std::string& text = instead[static_cast<size_t>(variable)];
    if (!text.empty()) rewriter.SetAttribute(node, kInsteadAttribute, text);
  }
  return Ok();
}

}  // namespace strata

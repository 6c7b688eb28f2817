#include "passes/placement/auto/explain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "passes/placement/costs/placed_cost.h"

namespace strata {
namespace {

/// The node `name`, or the parameter.
Result<NodeId> FindNode(const Graph& graph, std::string_view name) {
  std::vector<std::string> names;
  for (const NodeId node : graph.nodes()) {
    if (graph.name(node) == name || graph.attribute(node, "fqn") == name) return node;
    names.emplace_back(graph.name(node));
  }
  return Error("no node '{}': graph {}{}", name, graph.name_text(), DidYouMean(name, names));
}

/// Costs of a placed graph by node, as the graph before `place` names them. A redistribution is of
/// the node that made the value.
struct NodeCost {
  std::string placements;
  double us = 0;
};
std::map<std::string, NodeCost> CostsByName(const Graph& graph, const PlacedCost& cost) {
  std::map<std::string, NodeCost> costs;
  for (const PlacedCost::Item& item : cost.items) {
    NodeId node = item.node;
    while (graph.op(node) == kRedistributeOp)
      node = graph.value(graph.operands(node)[0]).def;
    costs[std::string(graph.name(node))].us += item.us();
  }
  for (auto& [name, of_node] : costs) {
    const auto node = FindNode(graph, name);
    if (!node || graph.node(*node).num_results == 0) continue;
    const TypeId type = graph.value(graph.result(*node)).type;
    if (type.valid())
      of_node.placements = PlacementsText(graph.module(), graph.module().types()[type].placements);
  }
  return costs;
}

}  // namespace

std::string StrategyText(const Module& module, const CallStrategy& strategy) {
  std::string text;
  for (const Placements& operand : strategy.operands)
    text += (text.empty() ? "" : ", ") + PlacementsText(module, operand);
  if (!strategy.operands.empty()) text += " -> ";
  for (size_t i = 0; i < strategy.results.size(); ++i)
    text += (i == 0 ? "" : ", ") + PlacementsText(module, strategy.results[i]);
  return text;
}

std::vector<Alternative> AlternativesOf(const AutoPlacement& placement, int variable,
                                        size_t max_forced, const SolverOptions& options) {
  const PairwiseProblem& problem = placement.space.problem;
  const SearchSpace::Variable& of = placement.space.variables[static_cast<size_t>(variable)];
  const int chosen = placement.solved.choices[static_cast<size_t>(variable)];
  std::vector<Alternative> alternatives;
  for (size_t i = 0; i < of.strategies.size(); ++i) {
    Alternative alternative{
        .choice = static_cast<int>(i),
        .compute_us = of.strategies[i].compute_us * static_cast<double>(of.runs),
        .around_us = 0,
        .forced_us = {},
        .is_chosen = static_cast<int>(i) == chosen};
    PairwiseProblem::Choices choices = placement.solved.choices;
    choices[static_cast<size_t>(variable)] = static_cast<int>(i);
    for (const PairwiseProblem::Edge& edge : problem.edges)
      if (edge.a == variable || edge.b == variable)
        alternative.around_us +=
            edge.cost(choices[static_cast<size_t>(edge.a)], choices[static_cast<size_t>(edge.b)]);
    alternatives.push_back(alternative);
  }
  std::ranges::stable_sort(alternatives, [](const Alternative& a, const Alternative& b) {
    if (a.is_chosen != b.is_chosen) return a.is_chosen;
    return a.compute_us + a.around_us < b.compute_us + b.around_us;
  });
  for (size_t i = 0; i < std::min(max_forced, alternatives.size()); ++i) {
    PairwiseProblem forced = problem;
    auto& costs = forced.variables[static_cast<size_t>(variable)];
    for (size_t choice = 0; choice < costs.size(); ++choice)
      if (static_cast<int>(choice) != alternatives[i].choice)
        costs[choice] = std::numeric_limits<double>::infinity();
    const SolverResult solved = Solve(forced, options);
    if (!solved.choices.empty())
      alternatives[i].forced_us = std::max(0.0, solved.cost - placement.solved.cost);
  }
  return alternatives;
}

Result<std::string> WhyText(const Graph& graph, const AutoPlacement& placement,
                            const CostModel& model, std::string_view name,
                            const SolverOptions& options) {
  STRATA_TRY(const NodeId node, FindNode(graph, name));
  const Module& module = graph.module();
  const auto found = placement.space.variable_of.find(node);
  if (found == placement.space.variable_of.end())
    return Error("nothing to place: {}: name a call or an input", name);
  const SearchSpace::Variable& of = placement.space.variables[static_cast<size_t>(found->second)];
  std::string text = fmt::format("{}: {}", graph.name(node),
                                 graph.node(node).kind == NodeKind::kCall
                                     ? std::string(graph.op(node))
                                     : std::string(graph.attribute(node, "fqn")));
  if (graph.node(node).module.valid())
    text += fmt::format(", {} in {}", ToString(graph.node(node).phase),
                        module.str(graph.node(node).module));
  if (of.count > 1) text += fmt::format(", with {} nodes that are alike", of.count - 1);
  text += '\n';
  for (const SearchSpace::Operand& operand : placement.space.operands) {
    if (operand.reader != found->second) continue;
    const auto& producer = placement.space.variables[static_cast<size_t>(operand.producer)];
    const int from = placement.solved.choices[static_cast<size_t>(operand.producer)];
    const int here = placement.solved.choices[static_cast<size_t>(found->second)];
    text += fmt::format(
        "  operand {} from {}: {}, {:.3f} µs\n", operand.operand, graph.name(producer.node),
        PlacementsText(module,
                       producer.strategies[static_cast<size_t>(from)].results[operand.result]),
        placement.space.EdgeUs(module, model, operand, from, here));
  }
  constexpr size_t kForced = 8;
  const auto alternatives = AlternativesOf(placement, found->second, kForced, options);
  text += "  more µs  compute µs  operands -> results\n";
  size_t shown = 0, possible = 0;
  bool is_forced = true;
  for (const Alternative& alternative : alternatives) {
    if (!alternative.is_chosen && alternative.forced_us) {
      ++possible;
      is_forced = false;
    }
    if (++shown > kForced) continue;
    const bool is_tie = alternative.forced_us && *alternative.forced_us < 0.01;
    text +=
        fmt::format("{:>9}  {:>10.3f}  {}{}\n",
                    alternative.is_chosen   ? "chosen"
                    : alternative.forced_us ? fmt::format("+{:.3f}", *alternative.forced_us)
                                            : "never",
                    alternative.compute_us,
                    StrategyText(module, of.strategies[static_cast<size_t>(alternative.choice)]),
                    is_tie && !alternative.is_chosen ? "  tie" : "");
  }
  if (shown > kForced) text += fmt::format("  and {} more\n", shown - kForced);
  if (is_forced && of.strategies.size() == 1) text += "  nothing else is allowed here\n";
  return text;
}

Result<std::string> DiffPlaced(Graph& graph_a, std::string_view a, Graph& graph_b,
                               std::string_view b, const CostModel& model) {
  STRATA_TRY(const PlacedCost cost_a, CostOfPlaced(graph_a, model));
  STRATA_TRY(const PlacedCost cost_b, CostOfPlaced(graph_b, model));
  std::string text = fmt::format("{:>14}  {:>14}  {:>14}\n", "ms", "compute", "communication");
  const auto line = [&](std::string_view name, const PlacedCost& cost) {
    text += fmt::format("{:>14.3f}  {:>14.3f}  {:>14.3f}  {}\n", cost.total() / 1e3,
                        cost.compute_us / 1e3, cost.communication_us / 1e3, name);
  };
  line(a, cost_a);
  line(b, cost_b);
  const auto nodes_a = CostsByName(graph_a, cost_a), nodes_b = CostsByName(graph_b, cost_b);
  std::map<std::string, int> changes;
  std::vector<std::pair<double, std::string>> most;
  for (const auto& [name, of_a] : nodes_a) {
    const auto of_b = nodes_b.find(name);
    if (of_b == nodes_b.end()) continue;
    const std::string change = of_a.placements + " -> " + of_b->second.placements;
    if (of_a.placements != of_b->second.placements) ++changes[change];
    const double difference = of_b->second.us - of_a.us;
    if (std::abs(difference) >= 0.001)
      most.emplace_back(
          difference,
          fmt::format("{}  {}", name,
                      of_a.placements == of_b->second.placements ? of_a.placements : change));
  }
  std::vector<std::pair<std::string, int>> sorted(changes.begin(), changes.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, int>::second);
  if (!sorted.empty()) text += "\nnodes  placement\n";
  for (const auto& [change, count] : sorted)
    text += fmt::format("{:>5}  {}\n", count, change);
  std::ranges::stable_sort(
      most, [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  if (!most.empty()) text += "\n     µs  node\n";
  constexpr size_t kMost = 20;
  for (size_t i = 0; i < std::min(kMost, most.size()); ++i)
    text += fmt::format("{:>+7.1f}  {}\n", most[i].first, most[i].second);
  return text;
}

}  // namespace strata

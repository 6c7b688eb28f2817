#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/placement/auto/auto_plan.h"

namespace strata {

/// "S(0)R, R -> S(0)": operands, then results.
std::string StrategyText(const Module& module, const CallStrategy& strategy);

/// A strategy that a variable could have instead.
struct Alternative {
  int choice = 0;
  double compute_us = 0;  ///< of all nodes that are alike
  double around_us = 0;   ///< communication with its neighbours, as these were chosen
  /// By how much everything costs more when it is forced and all else is decided anew; none: no
  /// placements are possible with it, or it was not asked for.
  std::optional<double> forced_us;
  bool is_chosen = false;
};

/// Those of a variable, the cheapest around its neighbours first. The first `max_forced` are
/// solved again.
std::vector<Alternative> AlternativesOf(const AutoPlacement& placement, int variable,
                                        size_t max_forced, const SolverOptions& options);

/// Why a node or an input has its placements: what it costs, where its operands come from, and what
/// the alternatives would cost. `name`: of a node, "mm_3", or of a parameter,
/// "layers.0.attention.wq .weight". Errors: no node has that name.
Result<std::string> WhyText(const Graph& graph, const AutoPlacement& placement,
                            const CostModel& model, std::string_view name,
                            const SolverOptions& options);

/// How two placed graphs of one step differ: parts of the cost, changes of placements by how often
/// they occur, and the nodes whose cost differs the most. `a` and `b` name the plans.
Result<std::string> DiffPlaced(Graph& graph_a, std::string_view a, Graph& graph_b,
                               std::string_view b, const CostModel& model);

}  // namespace strata

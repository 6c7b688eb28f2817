#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/budget/budget_search.h"
#include "passes/budget/recorded_times.h"

namespace strata {

/// Plans of which none is better in both peak and time (BudgetSearch::Front).
struct MemoryFront {
  std::vector<BudgetedPlan> plans;
  bool is_profiled = false;  ///< added times are those of a recorded profile
};

/// How the plans of a front are found.
struct MemoryFrontOptions {
  bool offload = true;   ///< results may be copied to the host
  std::string topology;  ///< whose times are modelled; "": by the device of the graph
  NodeTimes times;       ///< recorded, of nodes of the graph; empty: all are modelled
};

/// Plans of less memory for more time of a graph. Errors: a plan was applied to it already.
Result<MemoryFront> MemoryFrontOf(const Module& module, GraphId graph,
                                  const MemoryFrontOptions& options);

/// The passes that apply a plan of a front.
std::string PassesOf(const BudgetedPlan& plan);

}  // namespace strata

#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "ir/graph.h"
#include "passes/budget/budget_search.h"

namespace strata::cli {

/// Plans of which none is better in both peak and time (BudgetSearch::Front).
struct MemoryFront {
  std::vector<BudgetedPlan> plans;
  bool is_profiled = false;  ///< added times are those of a recorded profile
};

/// A row per plan, with a bar as long as its peak.
std::string FrontText(const Graph& graph, const MemoryFront& front);

/// The same as the array of the key `front`.
void WriteFront(JsonWriter& json, const MemoryFront& front);

}  // namespace strata::cli

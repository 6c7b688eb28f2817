#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "ir/graph.h"
#include "passes/budget/budget_search.h"

namespace strata::cli {

/// A row per plan of a front (BudgetSearch::Front), with a bar as long as its peak.
std::string FrontText(const Graph& graph, const std::vector<BudgetedPlan>& front);

/// The same as the array of the key `front`.
void WriteFront(JsonWriter& json, const std::vector<BudgetedPlan>& front);

}  // namespace strata::cli

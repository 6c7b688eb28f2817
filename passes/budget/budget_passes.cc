#include "passes/budget/budget_passes.h"

#include "passes/budget/budget.h"
#include "passes/budget/reorder_for_peak.h"

namespace strata {

void RegisterBudgetPasses(PassRegistry& registry) {
  registry.Add<Budget>("budget");
  registry.Add<ReorderForPeak>("reorder-for-peak");
}

}  // namespace strata

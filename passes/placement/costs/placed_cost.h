#pragma once
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/costs/placement_cost.h"

namespace strata {

/// What a step costs that `place` placed, by any plan.
struct PlacedCost {
  struct Item {
    NodeId node;
    double compute_us = 0, communication_us = 0;
    double us() const { return compute_us + communication_us; }
  };
  std::vector<Item> items;  ///< parameters, calls and redistributions, in program order
  double compute_us = 0, communication_us = 0;
  double total() const { return compute_us + communication_us; }
};
/// Errors: an operator without a rule.
Result<PlacedCost> CostOfPlaced(Graph& graph, const CostModel& model);

}  // namespace strata

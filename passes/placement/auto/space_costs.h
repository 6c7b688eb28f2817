#pragma once
#include "ir/module.h"
#include "passes/placement/auto/search_space.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/placement.h"

namespace strata {

/// An order of placements, which keys of maps need.
struct PlacementsLess {
  bool operator()(const Placements& a, const Placements& b) const;
};

/// Fills `space.problem`: what each choice of a variable costs, and each pair of choices that an
/// operand joins. Impossible redistributions cost kInfiniteCost.
void PriceChoices(Module& module, const CostModel& model, SearchSpace& space);

}  // namespace strata

#pragma once
#include <utility>

#include "passes/placement/place.h"

namespace strata {

/// The pass `place`, whose plan may be `auto`: the cheapest that a search finds
/// (passes/placement/auto/found_plan.h).
class PlaceOrSearch final : public Place {
 public:
  explicit PlaceOrSearch(Options options) : Place(std::move(options)) {}

 private:
  Result<PlacementPlan> PlanFor(Module& module, const Mesh& mesh) const override;
};

}  // namespace strata

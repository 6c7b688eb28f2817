#include "passes/placement/auto/place_or_search.h"

#include "passes/placement/auto/found_plan.h"

namespace strata {

Result<PlacementPlan> PlaceOrSearch::PlanFor(Module& module, const Mesh& mesh) const {
  if (options().plan != "auto") return Place::PlanFor(module, mesh);
  return FoundPlan(module, mesh,
                   {.topology = options().topology,
                    .memory_policy = options().memory_policy,
                    .reshard = reshard()});
}

}  // namespace strata

#include "passes/placement_passes.h"

#include "passes/placement/auto/place_or_search.h"
#include "passes/placement/lowering/lower.h"

namespace strata {

void RegisterPlacementPasses(PassRegistry& registry) {
  registry.Add<PlaceOrSearch>("place");
  registry.Add<LowerPlacements>("lower");
}

}  // namespace strata

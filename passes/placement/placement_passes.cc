#include "passes/placement/placement_passes.h"

#include "passes/placement/lower.h"
#include "passes/placement/place.h"

namespace strata {

void RegisterPlacementPasses(PassRegistry& registry) {
  registry.Add<Place>("place");
  registry.Add<LowerPlacements>("lower");
}

}  // namespace strata

#include "passes/placement_passes.h"

#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"

namespace strata {

void RegisterPlacementPasses(PassRegistry& registry) {
  registry.Add<Place>("place");
  registry.Add<LowerPlacements>("lower");
}

}  // namespace strata

#include "passes/cleanup/cleanup_passes.h"

#include "passes/cleanup/canonicalize.h"
#include "passes/cleanup/dce.h"

namespace strata {

void RegisterCleanupPasses(PassRegistry& registry) {
  registry.Add<DeadCodeElimination>("dce");
  registry.Add<Canonicalize>("canonicalize");
  registry.Add<RemoveDetach>("remove-detach");
  registry.Add<RemoveIdentityViews>("remove-identity-views");
  registry.Add<RemoveDoubleTransposes>("remove-double-transposes");
  registry.Add<RemoveIdentitySlices>("remove-identity-slices");
  registry.Add<NormalizeViews>("normalize-views");
}

}  // namespace strata

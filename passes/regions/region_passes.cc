#include "passes/regions/region_passes.h"

#include "passes/regions/annotate_regions.h"
#include "passes/regions/compile_regions.h"

namespace strata {

void RegisterRegionPasses(PassRegistry& registry) {
  registry.Add<AnnotateRegions>("annotate-regions");
  registry.Add<CompileRegions>("compile-regions");
}

}  // namespace strata

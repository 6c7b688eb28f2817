#include "passes/regions/region_passes.h"

#include "passes/regions/annotate_regions.h"
#include "passes/regions/compile_regions.h"
#include "passes/regions/compile_standalone.h"

namespace strata {

void RegisterRegionPasses(PassRegistry& registry) {
  registry.Add<AnnotateRegions>("annotate-regions");
  registry.Add<CompileRegions>("compile-regions");
  registry.Add<CompileStandalone>("compile-standalone");
}

}  // namespace strata

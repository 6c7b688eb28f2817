#include "passes/passes.h"

#include "passes/budget/budget_passes.h"
#include "passes/cleanup/cleanup_passes.h"
#include "passes/comm/comm_passes.h"
#include "passes/compile/compile_passes.h"
#include "passes/expert/expert_passes.h"
#include "passes/flex/flex_passes.h"
#include "passes/memory/memory_passes.h"
#include "passes/pipeline/pipeline_passes.h"
#include "passes/placement_passes.h"
#include "passes/regions/region_passes.h"

namespace strata {

PassRegistry AllPasses() {
  PassRegistry registry;
  RegisterCleanupPasses(registry);
  RegisterPlacementPasses(registry);
  RegisterMemoryPasses(registry);
  RegisterBudgetPasses(registry);
  RegisterExpertPasses(registry);
  RegisterCommPasses(registry);
  RegisterPipelinePasses(registry);
  RegisterFlexPasses(registry);
  RegisterRegionPasses(registry);
  RegisterCompilePasses(registry);
  return registry;
}

}  // namespace strata

#include "passes/passes.h"

#include "passes/cleanup/cleanup_passes.h"
#include "passes/compile/compile_passes.h"

namespace strata {

PassRegistry AllPasses() {
  PassRegistry registry;
  RegisterCleanupPasses(registry);
  RegisterCompilePasses(registry);
  return registry;
}

}  // namespace strata

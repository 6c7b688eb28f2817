#include "passes/passes.h"

#include "passes/cleanup/cleanup_passes.h"

namespace strata {

PassRegistry AllPasses() {
  PassRegistry registry;
  RegisterCleanupPasses(registry);
  return registry;
}

}  // namespace strata

#include "passes/flex/flex_passes.h"

#include "passes/flex/annotate_flex.h"

namespace strata {

void RegisterFlexPasses(PassRegistry& registry) {
  registry.Add<AnnotateFlex>("annotate-flex");
}

}  // namespace strata

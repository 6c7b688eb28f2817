#pragma once
#include "passes/core/registry.h"

namespace strata {

/// Passes that cut a training into the stages of a pipeline: `split-stages`, `split-fsdp`,
/// `split-backward`, `split-weight-gradients`, `split-optimizer`,
/// `multiplex-overlaps`.
void RegisterPipelinePasses(PassRegistry& registry);

}  // namespace strata

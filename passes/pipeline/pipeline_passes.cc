#include "passes/pipeline/pipeline_passes.h"

#include "passes/pipeline/multiplex_overlaps.h"
#include "passes/pipeline/split_backward.h"
#include "passes/pipeline/split_fsdp.h"
#include "passes/pipeline/split_optimizer.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/split_step.h"
#include "passes/pipeline/split_weight_gradients.h"

namespace strata {

void RegisterPipelinePasses(PassRegistry& registry) {
  registry.Add<SplitStages>("split-stages");
  registry.Add<SplitFsdp>("split-fsdp");
  registry.Add<SplitBackward>("split-backward");
  registry.Add<SplitWeightGradients>("split-weight-gradients");
  registry.Add<SplitOptimizer>("split-optimizer");
  registry.Add<MultiplexOverlaps>("multiplex-overlaps");
  registry.Add<SplitStep>("split-step");
}

}  // namespace strata

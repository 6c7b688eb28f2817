#include "passes/expert/expert_passes.h"

#include "passes/expert/concretize.h"
#include "passes/expert/eager_chunks.h"
#include "passes/expert/ep_chunk.h"
#include "passes/expert/ep_overlap.h"

namespace strata {

void RegisterExpertPasses(PassRegistry& registry) {
  registry.Add<EpChunk>("ep-chunk");
  registry.Add<EpOverlap>("ep-overlap");
  registry.Add<Concretize>("concretize");
  registry.Add<LabelChunks>("label-chunks");
}

}  // namespace strata

#include "passes/memory/memory_passes.h"

#include "passes/memory/offload.h"
#include "passes/memory/recompute.h"
#include "passes/memory/reshard_after_forward.h"
#include "passes/memory/tag_memory.h"
#include "passes/memory/tag_offload.h"

namespace strata {

void RegisterMemoryPasses(PassRegistry& registry) {
  registry.Add<TagMemory>("tag-memory");
  registry.Add<TagOffload>("tag-offload");
  registry.Add<ReshardParameters>("reshard-after-forward");
  registry.Add<Recompute>("recompute");
  registry.Add<Offload>("offload");
}

}  // namespace strata

#include "passes/memory/memory_passes.h"

#include "passes/memory/recompute.h"
#include "passes/memory/tag_memory.h"

namespace strata {

void RegisterMemoryPasses(PassRegistry& registry) {
  registry.Add<TagMemory>("tag-memory");
  registry.Add<Recompute>("recompute");
}

}  // namespace strata

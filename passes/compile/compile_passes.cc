#include "passes/compile/compile_passes.h"

#include "passes/compile/cuda_graph.h"
#include "passes/compile/fuse.h"
#include "passes/compile/place_casts.h"

namespace strata {

void RegisterCompilePasses(PassRegistry& registry) {
  registry.Add<PlaceCasts>("place-casts");
  registry.Add<Fuse>("fuse");
  registry.Add<CudaGraph>("cuda-graph");
}

}  // namespace strata

#include "passes/compile/compile_passes.h"

#include "passes/compile/cuda_graph.h"
#include "passes/compile/fuse.h"

namespace strata {

void RegisterCompilePasses(PassRegistry& registry) {
  registry.Add<Fuse>("fuse");
  registry.Add<CudaGraph>("cuda-graph");
}

}  // namespace strata

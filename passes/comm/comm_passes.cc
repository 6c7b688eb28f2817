#include "passes/comm/comm_passes.h"

#include "passes/comm/async_tensor.h"
#include "passes/comm/bucket_blocks.h"
#include "passes/comm/bucket_by_size.h"
#include "passes/comm/dedup_unshards.h"
#include "passes/comm/isolate_experts.h"
#include "passes/comm/overlap.h"
#include "passes/comm/reassign_groups.h"
#include "passes/comm/schedule_dense.h"

namespace strata {

void RegisterCommPasses(PassRegistry& registry) {
  registry.Add<DedupUnshards>("dedup-unshards");
  registry.Add<IsolateExpertGroups>("isolate-expert-groups");
  registry.Add<ReassignGroups>("reassign-groups");
  registry.Add<BucketTransformerBlocks>("bucket-transformer-blocks");
  registry.Add<BucketBySize>("bucket-by-size");
  registry.Add<ScheduleDenseRegions>("schedule-dense-regions");
  registry.Add<OverlapCollectives>("overlap-collectives");
  registry.Add<AsyncTensorParallel>("async-tensor-parallel");
}

}  // namespace strata

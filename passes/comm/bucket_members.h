#pragma once
#include <cstdint>
#include <vector>

#include "passes/comm/bucket_plan.h"
#include "passes/comm/bucketing.h"
#include "passes/comm/fsdp_collectives.h"

namespace strata {

/// The buckets of `plan` in `graph`: for each entry those of forward, then those of backward.
/// Launches that belong to no entry, or have `kBucketAttribute`, are in no bucket. Merging all of
/// the buckets closes no cycle.
std::vector<Bucket> FindBuckets(const Graph& graph, const FsdpCollectives& collectives,
                                const BucketPlan& plan);

/// Buckets of neighbours of at most `max_bytes` each, counting the larger of what a rank gives and
/// gets, for each direction, kind, group, reduction and type. A larger collective is a bucket
/// alone. Source: greedy_bucket_collective_by_mb of torch._inductor.fx_passes.bucketing.
std::vector<Bucket> FindBucketsBySize(const Graph& graph, const FsdpCollectives& collectives,
                                      int64_t max_bytes);

}  // namespace strata

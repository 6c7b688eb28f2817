#include "passes/comm/bucket_by_size.h"

#include <vector>

#include "ir/rewriter.h"
#include "passes/comm/bucket_members.h"
#include "passes/comm/prefetch.h"

namespace strata {

void BucketBySize::Options::Bind(OptionList& list) {
  list.Add("max_mb", max_mb, "of a bucket, in 1e6 bytes: what a rank gives or gets");
  list.Add("reorder", reorder, "launch gathers one bucket ahead, and wait for reductions later");
}

Result<Changed> BucketBySize::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    const auto max_bytes = static_cast<int64_t>(options_.max_mb * 1e6);
    const std::vector<Bucket> buckets = FindBucketsBySize(graph, FsdpCollectives(graph), max_bytes);
    if (buckets.empty()) continue;
    Rewriter rewriter(graph);
    Positions positions(graph);
    BucketMerger merger(rewriter, positions);
    for (const Bucket& bucket : buckets)
      merger.Merge(bucket);
    if (options_.reorder) PrefetchBuckets(rewriter, DefaultBuckets(BlockStructure::Of(graph)));
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata

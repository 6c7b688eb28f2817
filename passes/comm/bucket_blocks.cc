#include "passes/comm/bucket_blocks.h"

#include <algorithm>
#include <vector>

#include "ir/rewriter.h"
#include "passes/comm/bucket_members.h"
#include "passes/comm/prefetch.h"
#include "passes/memory/tag_memory.h"

namespace strata {

void BucketTransformerBlocks::Options::Bind(OptionList& list) {
  list.Add("plan", plan,
           "module paths that communicate together, tok_embeddings|layers.*|norm,lm_head; empty: "
           "one bucket per layer");
  list.Add("reorder", reorder, "launch gathers one bucket ahead, and wait for reductions later");
}

Result<Changed> BucketTransformerBlocks::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    if (!HasBackward(graph)) continue;
    const BlockStructure blocks = BlockStructure::Of(graph);
    BucketPlan plan = DefaultBuckets(blocks);
    if (!options_.plan.empty()) {
      STRATA_TRY(plan, ParseBucketPlan(options_.plan, blocks.num_layers));
    }
    const std::vector<Bucket> buckets = FindBuckets(graph, FsdpCollectives(graph), plan);
    if (buckets.empty()) continue;
    Rewriter rewriter(graph);
    Positions positions(graph);
    BucketMerger merger(rewriter, positions);
    for (const Bucket& bucket : buckets)
      merger.Merge(bucket);
    if (options_.reorder) PrefetchBuckets(rewriter, plan);
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata

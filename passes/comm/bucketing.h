#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/rewriter.h"
#include "passes/comm/moves.h"

namespace strata {

/// Attribute of the nodes that make a bucket: the plan's entry, "layers.3" or "norm,lm_head".
inline constexpr std::string_view kBucketAttribute = "fsdp_bucket";

/// Collectives of one kind, group, reduction and type that become one.
struct Bucket {
  std::vector<NodeId> launches;  ///< as they are packed; each has one user, its wait
  std::string label;             ///< the value of `kBucketAttribute`
  std::string module;            ///< of the new nodes; "": that of the first launch
};

/// The launch and the wait of a bucket.
struct MergedBucket {
  NodeId launch, wait;
};

/// Merges buckets. Bytes on the wire are unchanged, and results are bitwise equal.
///
///   before  a0 = all_gather(s0, 2)  w0 = wait(a0)  …  a1 = all_gather(s1, 2)  w1 = wait(a1)
///   after   p = cat([flat(s0), flat(s1)])  a = all_gather(p, 2)  w = wait(a)
///           (p0, p1) = split_with_sizes_copy(view(w, [2, -1]), [n0, n1], 1)
///           w0, w1 = view(p0), view(p1)
///
///   before  r0 = reduce_scatter(g0)  w0 = wait(r0)  …  r1 = reduce_scatter(g1)  w1 = wait(r1)
///   after   p = cat([view(g0, [2, -1]), view(g1, [2, -1])], 1)  r = reduce_scatter(flat(p), 2)
///           w = wait(r)  (p0, p1) = split_with_sizes(w, [n0, n1])  w0, w1 = view(p0), view(p1)
///
/// All-gathers are launched where the first one was, and waited for before the first wait.
/// Reductions are launched where the last one was, and waited for at the first wait after that.
/// What they read moves up, and what reads them moves down, as far as needed.
///
/// Source: merge_all_gather_bucket and merge_reduce_scatter_bucket of
/// torch._inductor.fx_passes.bucketing; the copies are those of FSDP2.
class BucketMerger {
 public:
  BucketMerger(Rewriter& rewriter, Positions& positions)
      : rewriter_(rewriter), graph_(rewriter.graph()), positions_(positions) {}

  /// A bucket of one launch gets its attribute and stays. REQUIRES: no launch reads another one.
  MergedBucket Merge(const Bucket& bucket);

 private:
  struct Member;
  class Builder;

  void MergeGathers(Builder& builder);
  void MergeReductions(Builder& builder);
  void Replace(const std::vector<Member>& members, const std::vector<ValueId>& results);

  Rewriter& rewriter_;
  Graph& graph_;
  Positions& positions_;
};

}  // namespace strata

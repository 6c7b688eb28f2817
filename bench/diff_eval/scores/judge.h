#pragma once
#include "bench/diff_eval/mutations/mutations.h"
#include "bench/diff_eval/scores/score.h"
#include "bench/diff_eval/scores/tally.h"
#include "bench/diff_eval/truth/truth.h"
#include "diff/model/graph_diff.h"

namespace strata::bench {

/// Measures what is said of one mutated graph.
class Judge {
 public:
  /// All must outlive it.
  Judge(const Lineage& lineage, const GraphDiff& diff, const Truth& truth);

  /// Identity as any method claims it.
  void CountIdentity(const Partners& partners, Tally& tally) const;
  /// The rest, of our diff: statuses, fields, relations, hunks, confidence.
  void CountOurs(Tally& tally) const;

 private:
  EntityId TruePartner(EntityId before) const;
  bool Exchangeable(size_t before, int32_t claim) const;
  void CountStatuses(Tally& tally) const;
  void CountFields(Tally& tally) const;
  void CountRelations(Tally& tally) const;
  void CountHunks(Tally& tally) const;

  const Lineage& lineage_;
  const GraphDiff& diff_;
  const Truth& truth_;
  const std::vector<uint64_t> orbits_;
};

}  // namespace strata::bench

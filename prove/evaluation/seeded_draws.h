#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "prove/evaluation/evaluator.h"

namespace strata::prove {

/// Random calls that got seeds of their own.
///
/// Inductor writes `prims.inductor_random(size, seed, 'rand')` for the k-th random call of a graph,
/// `aten.rand(size)`, where `seed` is element k of `prims.inductor_seeds`
/// (torch/_inductor/fx_passes/replace_random.py). Numbers that are drawn independently of each
/// other may stand for one another if they have one distribution, so a proof may take it for
/// granted that both draw the same ones.
class SeededDraws {
 public:
  /// `after`: graphs that share their seeds, as a forward and a backward graph do. Nothing is
  /// paired unless both sides draw equally many tensors, in pairs of equal types and distributions.
  SeededDraws(const Graph& before, std::span<const Graph* const> after);

  bool empty() const { return draws_.empty(); }
  /// What a proof takes for granted.
  std::string Text() const;

  /// Keeps what a node of `before` drew.
  void Keep(NodeId node, std::span<const Value> results);
  /// What nodes of a graph of `after` compute then. REQUIRES: all draws are kept.
  GivenResults ResultsIn(const Graph& after) const;

 private:
  struct Draw {
    NodeId node;  // of `before`
    Value drawn;
  };
  std::vector<Draw> draws_;                                   // by seed
  std::map<const Graph*, std::map<NodeId, size_t>> seed_of_;  // random calls of `after`: their seed
};

}  // namespace strata::prove

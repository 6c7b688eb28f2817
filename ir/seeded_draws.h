#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// Random calls that got seeds of their own.
///
/// Inductor writes `prims.inductor_random(size, seed, 'rand')` for the k-th random call of a graph,
/// `aten.rand(size)`, where `seed` is element k of `prims.inductor_seeds`
/// (torch/_inductor/fx_passes/replace_random.py). Numbers that are drawn independently of each
/// other may stand for one another if they have one distribution, so a comparison may take it for
/// granted that both draw the same ones.
class SeededDraws {
 public:
  /// `after`: graphs that share their seeds, as a forward and a backward graph do. Nothing is
  /// paired unless both sides draw equally many tensors, in pairs of equal types and distributions.
  SeededDraws(const Graph& before, std::span<const Graph* const> after);

  bool empty() const { return draws_.empty(); }
  /// What a comparison takes for granted.
  std::string Text() const;

  /// Whether a node of `before` draws what a call with a seed draws.
  bool IsDraw(NodeId node) const;
  /// The node of `before` that draws what `node`, of a graph of `after`, draws; not valid: `node`
  /// is not a call with a seed.
  NodeId DrawOf(const Graph& after, NodeId node) const;

 private:
  std::vector<NodeId> draws_;                                 // by seed
  std::map<const Graph*, std::map<NodeId, size_t>> seed_of_;  // calls with seeds: their seed
};

/// Whether the node makes seeds, or reads one of them. Only calls with seeds read them.
bool IsSeed(const Graph& graph, NodeId node);

}  // namespace strata

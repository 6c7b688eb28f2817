#pragma once
#include <map>
#include <span>

#include "ir/seeded_draws.h"
#include "prove/evaluation/evaluator.h"

namespace strata::prove {

/// Values of draws that calls with seeds of another graph draw, too.
class DrawnValues {
 public:
  /// REQUIRES: `draws` outlives this.
  explicit DrawnValues(const SeededDraws& draws) : draws_(draws) {}

  /// Keeps what a node of the graph before drew.
  void Keep(NodeId node, std::span<const Value> results);
  /// What nodes of a graph after compute then. REQUIRES: all draws are kept.
  GivenResults ResultsIn(const Graph& after) const;

 private:
  const SeededDraws& draws_;
  std::map<NodeId, Value> drawn_;
};

}  // namespace strata::prove

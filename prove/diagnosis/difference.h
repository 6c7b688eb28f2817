#pragma once
#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "prove/diagnosis/cone.h"
#include "prove/diagnosis/value_facts.h"

namespace strata::prove {

/// A value that differs, in the graph before a pass and in the one after it: what rules look at.
/// REQUIRES: graphs and facts outlive it.
struct Difference {
  Difference(const Graph& before, NodeId expected, const Graph& after, NodeId node,
             const ValueFacts& facts);

  const Graph& before;
  const NodeId expected;  ///< of `before`: what should have made the value
  const Graph& after;
  const NodeId node;  ///< of `after`: what made it
  const ValueFacts& facts;
  const Mesh mesh;  ///< of `after`; no axes: one rank
  const std::set<StableId> before_ids;
  const std::set<StableId> after_ids;  ///< of what something reads
  const bool is_same;                  ///< both graphs have the node
  Cone was, is;  ///< of `expected` and of `node`; of a node that both have, its operands'
};

NodeId NodeWithId(const Graph& graph, StableId id);

/// Nodes that both graphs have and that an operand is made of, sorted, each once.
std::vector<StableId> RootsOfOperand(const Difference& d, const Graph& graph, ValueId operand,
                                     const std::set<StableId>& others);

/// Elements of `a` that `b` has not as often. REQUIRES: both are sorted.
template <class T>
std::vector<T> Without(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> rest;
  std::ranges::set_difference(a, b, std::back_inserter(rest));
  return rest;
}

}  // namespace strata::prove

#pragma once
#include <functional>
#include <utility>

#include "ir/graph.h"

namespace strata::prove {

/// Compares nodes of one module; `same_value` says which operands count as equal.
class NodeComparison {
 public:
  using SameValueFn = std::function<bool(ValueId, ValueId)>;
  /// REQUIRES: both graphs outlive this.
  NodeComparison(const Graph& a, const Graph& b, SameValueFn same_value)
      : a_(a), b_(b), same_value_(std::move(same_value)) {}

  /// Whether `from` of graph a and `to` of graph b are the same call: operator, literals, bodies,
  /// types of results, and operands that count as equal.
  bool IsSame(NodeId from, NodeId to) const;

 private:
  bool IsSameArg(const Arg& x, const Arg& y) const;
  static bool IsSameBody(const Graph& a, const Graph& b);

  const Graph &a_, &b_;
  SameValueFn same_value_;
};

}  // namespace strata::prove

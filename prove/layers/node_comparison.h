#pragma once
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "ir/graph.h"

namespace strata::prove {

/// Of two arguments that mean the same in any module: nothing, a number or a data type; none of
/// others. REQUIRES: of one kind.
std::optional<bool> AreEqualNumbers(const Arg& x, const Arg& y);

/// Compares nodes of one module, in program order; `same_value` says which operands count as equal.
/// Data-dependent sizes that nodes of the one graph read stand for those that the nodes of the
/// other read in their place.
class NodeComparison {
 public:
  using SameValueFn = std::function<bool(ValueId, ValueId)>;
  /// REQUIRES: both graphs outlive this.
  NodeComparison(const Graph& a, const Graph& b, SameValueFn same_value)
      : a_(a), b_(b), same_value_(std::move(same_value)) {}

  /// Whether `from` of graph a and `to` of graph b are the same call: operator, literals, bodies,
  /// types of results, and operands that count as equal.
  bool IsSame(NodeId from, NodeId to);

 private:
  bool IsSameType(TypeId x, TypeId y);
  /// Equal expressions, of sizes that stand for each other.
  bool IsSameDim(DimId x, DimId y) const;
  bool IsSameArg(const Arg& x, const Arg& y) const;
  static bool IsSameBody(const Graph& a, const Graph& b);

  const Graph &a_, &b_;
  SameValueFn same_value_;
  std::map<DimId, DimId> read_, read_of_b_;  // symbols of graph a and b, by those of the other
};

}  // namespace strata::prove

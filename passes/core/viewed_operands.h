#pragma once
#include <cstddef>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

/// Through which operand, in flattened order, each result is a view. A pass that copies and
/// redirects remembers it before, and states the owners of memory anew at its end.
class ViewedOperands {
 public:
  explicit ViewedOperands(const Graph& graph);

  /// `to` is a copy of `from`: a view if that is one, through the same operand.
  void Copy(ValueId from, ValueId to);
  /// A new view.
  void Add(ValueId view, std::ptrdiff_t operand) { operand_[view] = operand; }
  /// The owner of each view is that of the operand that it views now.
  void Update(Rewriter& rewriter) const;

 private:
  const Graph& graph_;
  std::unordered_map<ValueId, std::ptrdiff_t> operand_;
};

}  // namespace strata

#pragma once
#include "base/id.h"
#include "ir/graph.h"

namespace strata::prove {

/// Values of one graph that are equal because the same call computes them from equal operands, as
/// what backward computes again of forward. Calls that draw random numbers, or that read memory
/// which was written to after the operand, are like no others.
class AlikeValues {
 public:
  explicit AlikeValues(const Graph& graph);

  /// The first value that is equal to this one, as long as nothing writes to either; itself if
  /// there is no other.
  ValueId FirstOf(ValueId value) const { return first_[value]; }

 private:
  IdVector<ValueId, ValueId> first_;
};

}  // namespace strata::prove

#pragma once
#include <cstddef>
#include <vector>

#include "ir/graph.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Calls that ranks compute together: where they read the same memory, as after a gather, one of
/// them computes what all have. Nothing writes to such results.
class SharedCalls {
 public:
  explicit SharedCalls(const Graph& graph);

  /// Whether the results depend on the operands alone, and nothing writes to their memory.
  bool CanShare(NodeId node) const { return can_share_[static_cast<size_t>(node.index)]; }
  /// Whether some node writes to the memory of its results.
  bool IsWritten(NodeId node) const { return is_written_[static_cast<size_t>(node.index)]; }

 private:
  std::vector<bool> can_share_, is_written_;  // by node
};

/// Whether both are one tensor: the same view of the same memory.
bool IsSameMemory(const Tensor& a, const Tensor& b);
/// That, or equal numbers.
bool IsSameMemory(const Value& a, const Value& b);

}  // namespace strata::prove

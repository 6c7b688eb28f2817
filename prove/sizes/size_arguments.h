#pragma once
#include <cstdint>
#include <functional>

#include "ir/graph.h"

namespace strata::prove {

/// What an integer in a call means.
enum class IntegerUse : uint8_t {
  kSize,    ///< a size, or a bound within one
  kNumber,  ///< a number of arithmetic
  kReal,    ///< a real number that is whole, or divides 1: 2.0; of 0.25 the 4
  kLast,    ///< an index: one less than a size, if it is that
  kName,    ///< no quantity: a dimension of a tensor, an exponent, a label that does not count
  kOther,   ///< anything else: a flag, a count
};

/// Calls `fn` for each literal integer in the arguments of a node, with its slot (see Use).
void ForEachInteger(const Graph& graph, NodeId node,
                    const std::function<void(uint32_t slot, IntegerUse use, int64_t value)>& fn);

}  // namespace strata::prove

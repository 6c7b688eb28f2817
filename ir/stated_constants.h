#pragma once
#include <map>
#include <string>

#include "ir/graph.h"

namespace strata {

/// The number that all elements of a constant are.
struct StatedConstant {
  Arg literal;       ///< of the graph that states it
  std::string text;  ///< "3", "(1+2j)"
};

/// By the attribute that holds them.
using StatedConstants = std::map<std::string, StatedConstant>;

/// The constants of `before` that `after` has as literals.
///
/// A log does not say what a constant (`_tensor_constant0`) holds. A compiler that folds it writes
/// `aten.full([], 3.0)` instead, and the calls that read one where they read the other before state
/// the number. Calls are the same if they have one name and operator. What two calls state
/// otherwise is left out.
StatedConstants StatedConstantsOf(const Graph& before, const Graph& after);

}  // namespace strata

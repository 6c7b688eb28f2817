#pragma once
#include "ir/graph.h"

namespace strata::prove {

/// Products of numbers that the evaluation of a graph takes in its matrix products and attention,
/// which is nearly all of its time: about 10^8 in a second. Sizes that are not known count as 1.
double ProductsOf(const Graph& graph);

/// Graphs that need more are not evaluated.
inline constexpr double kMaxProducts = 2e10;

}  // namespace strata::prove

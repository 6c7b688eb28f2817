#pragma once
#include "ir/graph.h"

namespace strata::prove {

/// Products of numbers that the evaluation of a graph takes in its matrix products and attention,
/// which is nearly all of its time: about 10^8 in a second. Sizes that are not known count as 1.
double ProductsOf(const Graph& graph);

/// Graphs that need more are not evaluated.
inline constexpr double kMaxProducts = 2e10;

/// Elements of all inputs. Sizes that are not known count as 1.
double InputElementsOf(const Graph& graph);

/// Elements of all inputs and of the results that a later node reads, at the node where these are
/// most. Results of views count as nothing.
double PeakElementsOf(const Graph& graph);

/// Whether a proof of the graph takes about a millisecond.
bool IsQuick(const Graph& graph);

/// At once, on all ranks. Graphs that need more are not evaluated.
inline constexpr double kMaxBytes = 4.0 * (1 << 30);

}  // namespace strata::prove

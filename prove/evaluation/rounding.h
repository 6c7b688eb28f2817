#pragma once
#include <span>

#include "ir/graph.h"
#include "prove/values/call.h"
#include "prove/values/field.h"

namespace strata::prove {

/// Whether values of the type are rounded in a proof that looks at rounding: floating-point types
/// of less than 32 bits. Wider ones are exact.
bool IsNarrow(DType dtype);

/// Whether a node of the graph has a result of such a type.
bool HasNarrowValues(const Graph& graph);

/// The number of a narrow type that stands for `x`. Only this is known of rounding: equal numbers
/// round to equal ones, a number that the type has stays (small integers, what was rounded to it or
/// to a narrower type before), and -x rounds to the opposite of what x does. So it commutes with
/// what moves numbers, not with sums.
Residue Round(Residue x, DType dtype);

/// Rounds the results of a node that have narrow types: operators compute exactly and round what
/// they return.
void RoundResults(const Graph& graph, NodeId node, std::span<Value> results);

}  // namespace strata::prove

#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"

namespace strata {

/// Where a graph of a history comes from: it was cut out of another one (a forward graph out of the
/// joint graph), or is another one, printed again.
struct Descent {
  int32_t parent = -1;  ///< index into History::graphs; -1: it comes from no other graph
  int32_t step = -1;    ///< of the parent, the last one before the graph came
};

/// By graph; of a log told for the graphs of `graph`'s compilation only, whose texts are loaded.
///
/// A graph comes from the earlier one that has most of its computations; of several that have as
/// many, from the smallest; then from one of which no graph of this record came yet; then from the
/// latest. One that has less than half of them is none. Computations are one when their StableIds
/// are, or, in logs, names and operators: PyTorch keeps both when it cuts and prints graphs again.
/// Nothing else depends on names; which node is which is for `Diff` to say. Graphs of equal records
/// (of parts that are compiled one by one) do not come from one another.
///
/// Errors: a graph that cannot be loaded.
Result<std::vector<Descent>> FindDescents(const History& history, int32_t graph);

}  // namespace strata

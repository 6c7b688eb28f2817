#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"

namespace strata {

/// The parent of a graph: the graph that it was cut out of (a forward graph out of the joint graph)
/// or that it repeats.
struct Descent {
  int32_t parent = -1;  ///< index into History::graphs; -1: none
  int32_t step = -1;    ///< the parent's last step before the graph appears
};

/// The parent of each graph. For a log, only of the graphs of `graph`'s compilation, whose texts
/// are loaded.
///
/// The parent is the earlier graph that shares most computations; of several, the smallest, then
/// one that is not yet a parent of a graph of this record, then the latest. A graph that shares
/// less than half is not a parent. Computations are shared if their StableIds are equal or, in
/// logs, their names and operators: PyTorch keeps both when it partitions and prints a graph again.
/// Nothing else depends on names; `Diff` decides which nodes are the same. Graphs of equal records
/// (parts that are compiled one by one) are not parents of each other.
///
/// Errors: a graph that cannot be loaded.
Result<std::vector<Descent>> FindDescents(const History& history, int32_t graph);

}  // namespace strata

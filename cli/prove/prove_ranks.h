#pragma once
#include <string>

#include "base/result.h"
#include "cli/prove/value_pairs.h"
#include "ir/graph.h"
#include "runtime/exec/compare_values.h"

namespace strata::cli {

/// Whether `lower` wrote the graph and it is whole: parts do not know the types of what they save.
bool HasGlobalTypes(const Graph& graph);

/// Runs a graph on one rank, and what `lower` made of it on all ranks of its mesh, each on its part
/// of the same synthetic inputs, and compares what comes out with what the ranks' parts make. Sums
/// round in another order on ranks. `31 outputs of 2 ranks are within 2.4e-07 of those of one`.
/// Errors: an output or a written input that is not close.
Result<std::string> ProveLowering(const Graph& before, const Graph& after);

/// As CompareValues, on every rank of the graphs' mesh: the comparison of the first rank where
/// values differ, else of rank 0. REQUIRES: both are lowered.
Result<ValueComparison> CompareValuesOnRanks(const Graph& before, const Graph& after,
                                             const MatchedGraphs& matched,
                                             const ValueTolerance& tolerance);

}  // namespace strata::cli

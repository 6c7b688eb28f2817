#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/prove/value_pairs.h"
#include "ir/graph.h"
#include "runtime/exec/compare_values.h"
#include "runtime/files/tensor_io.h"

namespace strata::cli {

/// Runs a graph on one rank, and what `lower` made of it on all ranks of its mesh, each on its part
/// of the same inputs, and compares what comes out with what the ranks' parts make. Sums round in
/// another order on ranks: how far that moves a result shows one rank with inputs that are rounded
/// otherwise. `31 outputs and 33 inputs of 2 ranks are within 2.4e-07 of those of one`.
///
/// `inputs`: all inputs by name, of which the first count that make finite numbers.
/// Errors: an output or a written input that is not close. REQUIRES: HasGlobalTypes(after).
Result<std::string> ProveLowering(const Graph& before, const Graph& after,
                                  std::initializer_list<const NamedTensors*> inputs);

/// As CompareValues, on every rank of the graphs' mesh: the comparison of the first rank where
/// values differ, else of rank 0. `inputs`: of the first graph, by rank; `more`: what the second
/// one takes beside them. REQUIRES: `lower` wrote both.
Result<ValueComparison> CompareValuesOnRanks(const Graph& before, const Graph& after,
                                             const MatchedGraphs& matched,
                                             const std::vector<NamedTensors>& inputs,
                                             const NamedTensors& more,
                                             const ValueTolerance& tolerance);

}  // namespace strata::cli

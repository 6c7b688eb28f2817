#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/exec/tensor_difference.h"
#include "runtime/exec/value_tolerance.h"
#include "runtime/files/tensor_io.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// A value of one graph that stands for a value of another.
struct ValuePair {
  ValueId before, after;
};

struct ValueMismatch {
  ValuePair pair;
  TensorDifference difference;
  std::string types;  ///< `Float [4], was Half [4]` where these differ, and `difference` is nothing
};

/// What was compared of one kind of values.
struct ComparedValues {
  int64_t compared = 0;
  std::vector<ValueMismatch> mismatches;
  int64_t different() const { return std::ssize(mismatches); }
};

struct ValueComparison {
  /// Of pairs of nodes, as they were computed, in the order of the second graph.
  ComparedValues nodes;
  int64_t not_compared = 0;  ///< pairs of nodes of other sizes or types, or without a tensor
  ComparedValues outputs;    ///< of the graphs
  ComparedValues written;    ///< of pairs of inputs that a run wrote to, as they are afterwards

  int64_t compared() const { return nodes.compared + outputs.compared + written.compared; }
  /// Of nodes, else outputs, else inputs; null when nothing differs.
  const ValueMismatch* first() const;
};

/// Runs two graphs, each on its inputs, operator by operator, and compares what `pairs` join:
/// results of nodes when they are computed, inputs after the run. Outputs are compared by their
/// places where both graphs have equally many, others by pairs. Values within `tolerance` count as
/// equal; another type or size of an output or an input is a difference.
///
/// Calls with seeds draw what random calls of the first graph draw (ir/seeded_draws.h).
///
/// Graphs with collectives run on the threads of a ThreadTeam, each on its rank's inputs.
/// Keeps a copy of each paired value of the first graph. Errors: a graph that cannot be executed.
Result<ValueComparison> CompareValues(const Graph& before, const Graph& after,
                                      std::span<const ValuePair> pairs,
                                      const NamedTensors& before_inputs,
                                      const NamedTensors& after_inputs,
                                      const ValueTolerance& tolerance = {});

}  // namespace strata

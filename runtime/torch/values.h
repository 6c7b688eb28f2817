#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ir/graph.h"
#include "ir/result.h"
#include "runtime/torch/tensor_io.h"
#include "runtime/torch/tracer.h"

namespace strata {

/// How two tensors of equal sizes and type differ.
struct TensorDifference {
  int64_t elements = 0;   ///< that differ; equal NaNs do not
  double max_ulps = 0.0;  ///< numbers that lie between two elements, of their type; infinite when
                          ///< one is NaN. Of integers the difference
  double max_abs = 0.0;
  int64_t where = 0;                 ///< row-major index of the worst element
  double before = 0.0, after = 0.0;  ///< the worst element (its real part)
};
TensorDifference Compare(const at::Tensor& before, const at::Tensor& after);

/// A value of one graph that stands for a value of another.
struct ValuePair {
  ValueId before, after;
};

struct ValueMismatch {
  ValuePair pair;
  TensorDifference difference;
};

struct ValueComparison {
  int64_t compared = 0, different = 0;
  int64_t not_compared = 0;  ///< pairs of other sizes or types, or of what is no tensor
  double max_ulps = 0.0;
  /// Those that differ, in the order in which the second graph computes them.
  std::vector<ValueMismatch> mismatches;
  /// Of the graphs' outputs, by place: how many differ, and by how much at most.
  int64_t outputs = 0, different_outputs = 0;
  double max_output_ulps = 0.0;
};

/// Runs two graphs, each on its inputs, operator by operator, and compares the values of `pairs` as
/// they are when they are computed. Differences up to `tolerated_ulps` are none.
///
/// Keeps a copy of each paired value of the first graph. Errors: a graph that cannot be executed.
Result<ValueComparison> CompareValues(const Graph& before, const Graph& after,
                                      std::span<const ValuePair> pairs,
                                      const NamedTensors& before_inputs,
                                      const NamedTensors& after_inputs,
                                      double tolerated_ulps = 0.0);

/// Runs a graph. Constants are among `inputs`, by their attribute paths. Results by the names of
/// the outputs' values; what is given out twice has one name and is stored once.
Result<std::vector<std::pair<std::string, at::Tensor>>> RunGraph(const Graph& graph,
                                                                 const NamedTensors& inputs);

}  // namespace strata

#pragma once
#include <string>
#include <vector>

#include "diff/diff.h"
#include "ir/result.h"
#include "runtime/torch/tensor_io.h"
#include "runtime/torch/values.h"

namespace strata::cli {

/// Two graphs with the values that stand for each other.
struct MatchedGraphs {
  GraphDiff diff;
  std::vector<ValuePair> pairs;

  /// The name of a value of one side, and the module that it belongs to.
  std::string NameBefore(ValueId value) const;
  std::string NameAfter(ValueId value) const;
  std::string ModuleAfter(ValueId value) const;
};
Result<MatchedGraphs> MatchGraphs(const Graph& before, const Graph& after, bool stable_ids);

/// The inputs of the second graph: those of the first by the diff's pairs, others by their names.
NamedTensors TransferInputs(const MatchedGraphs& matched, const NamedTensors& inputs);

/// `mm_3 (layers.0.attention.wo): 12 elements, 3 ulps at [7]: 0.25 became 0.2500001`.
std::string DescribeMismatch(const MatchedGraphs& matched, const ValueMismatch& mismatch);

}  // namespace strata::cli

#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/model/graph_diff.h"
#include "ir/stored_inputs.h"
#include "runtime/exec/compare_values.h"
#include "runtime/files/tensor_io.h"

namespace strata::cli {

/// Two graphs with the values that stand for each other: results of nodes, and inputs.
struct MatchedGraphs {
  GraphDiff diff;
  std::vector<ValuePair> pairs;
  StoredInputs stored;  ///< inputs of the first graph that are attributes of the second

  /// The name of a value of one side, and the module that it belongs to.
  std::string NameBefore(ValueId value) const;
  std::string NameAfter(ValueId value) const;
  std::string ModuleAfter(ValueId value) const;
};

/// Nodes as the differ pairs them. Inputs that say what they are (`fqn`: `layers.0.norm.weight`) by
/// that, others as the differ does.
Result<MatchedGraphs> MatchGraphs(const Graph& before, const Graph& after, bool stable_ids);

/// The inputs of the second graph: those of the first by the pairs, or as attributes; others by
/// their names.
NamedTensors TransferInputs(const MatchedGraphs& matched, const NamedTensors& inputs);

/// The first difference, of a node, an output or a written input:
/// `mm_3 (layers.0.attention.wo): 12 elements, up to 3 ulps, 1e-07 of the largest: element 7 is
/// 0.25, was 0.2500001`.
/// REQUIRES: something differs.
std::string DescribeFirst(const MatchedGraphs& matched, const ValueComparison& comparison);

}  // namespace strata::cli

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// The first step at which two runs differ.
struct Divergence {
  /// Where in AlignSteps(a, b), and the steps: one of them is -1 when only one run has it.
  int32_t position = 0;
  StepPair steps;
  std::string graph;
  /// The snapshots that differ; one is -1 when that run has no such graph.
  int32_t snapshot_a = -1, snapshot_b = -1;
  /// The first node that differs, by its name on each side; "" where it is missing.
  std::string node_a, node_b;
  std::string what;     ///< in words, from `a` to `b`; of a pass that only `a` has, what it did
  int32_t changes = 0;  ///< hunks between the two snapshots

  const std::string& node() const { return node_a.empty() ? node_b : node_a; }
};

struct BisectOptions {
  /// Equal strings: the graphs count as equal. Default: their fingerprints.
  std::function<Result<std::string>(const History&, int32_t snapshot)> identity = {};
  /// Changes that are none: of `diff`, the pair's field.
  std::function<bool(const GraphDiff& diff, const Pair& pair, const FieldDiff& field)> ignore = {};
};

/// Goes through the corresponding steps of two runs and compares what they left; none: the runs
/// agree to the end. Passes that only one run has part them only if what follows differs too.
/// Compares node by node at one step only. Errors: a graph that cannot be loaded.
Result<std::optional<Divergence>> FindDivergence(const History& a, const History& b,
                                                 const BisectOptions& options = {});

}  // namespace strata

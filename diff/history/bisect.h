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
  /// The position in AlignSteps(a, b), and the steps; one is -1 if only one run has the step.
  int32_t position = 0;
  StepPair steps;
  std::string graph;
  /// The snapshots that differ; one is -1 if that run lacks the graph.
  int32_t snapshot_a = -1, snapshot_b = -1;
  /// The first node that differs, by its name on each side; "" where it is missing.
  std::string node_a, node_b;
  std::string what;     ///< the change from `a` to `b`; for a pass that only `a` has, its change
  int32_t changes = 0;  ///< hunks between the two snapshots

  const std::string& node() const { return node_a.empty() ? node_b : node_a; }
};

struct BisectOptions {
  /// Whether snapshots of the two runs count as equal. Default: their identities are equal.
  std::function<Result<bool>(int32_t a, int32_t b)> agree = {};
  /// Graphs with equal identities count as equal. Default: the fingerprint.
  std::function<Result<std::string>(const History&, int32_t snapshot)> identity = {};
  /// Returns true for a difference to ignore: a field of a pair of `diff`.
  std::function<bool(const GraphDiff& diff, const Pair& pair, const FieldDiff& field)> ignore = {};
};

/// The first aligned step at which the results of two runs differ; none: the runs agree to the end.
/// A pass that only one run has counts only if the results of the following steps differ too, and
/// not where the other may lack it (see MayLack). Diffs nodes at that step only. Errors: a graph
/// that cannot be loaded.
Result<std::optional<Divergence>> FindDivergence(const History& a, const History& b,
                                                 const BisectOptions& options = {});

}  // namespace strata

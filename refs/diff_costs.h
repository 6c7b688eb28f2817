#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "diff/model/graph_diff.h"
#include "refs/measured_graphs.h"
#include "refs/ref.h"
#include "scene/cost_diff.h"

namespace strata {

/// The times of the graphs of some runs.
class GraphTimes {
 public:
  /// Of the runs that `ref` names: what `strata train --profile` recorded, or what a trace of
  /// PyTorch's profiler measured, `chrome`; "": none is given. Errors: as MeasureByChrome.
  static Result<GraphTimes> Open(const std::string& ref, const std::string& chrome);

  struct Times {
    StatisticsTable table;  ///< of the graph's nodes, by its StableIds
    double rest_us = 0;     ///< of no node that is known, in a step
  };
  /// `name`: of the graph in its run.
  std::optional<Times> Of(const Graph& graph, const std::string& name) const;
  /// "no times of this graph", and what to do.
  Error Missing() const;

 private:
  std::string ref_, chrome_;
  std::vector<StatisticsTable> recorded_;
  std::vector<MeasuredGraph> measured_;
};

/// Where the times of a side come from.
struct CostSource {
  std::string ref;    ///< of the graph
  std::string graph;  ///< its name in its run
  /// A trace of PyTorch's profiler; "": what `strata train --profile` recorded.
  std::string chrome = {};
};

/// How costs changed between the graphs of a diff. Errors, with `needs_times`: no times of one of
/// them.
Result<CostComparison> CostsOfDiff(const GraphDiff& diff, const CostSource& before,
                                   const CostSource& after, bool needs_times);

/// How costs changed between the graphs of two runs.
class RunCosts {
 public:
  /// The histories must outlive it. Traces of PyTorch's profiler as in GraphTimes.
  static Result<RunCosts> Open(const History& before, const std::string& chrome_before,
                               const History& after, const std::string& chrome_after);

  /// Of two snapshots, which `diff` compares. Which pass made a node is known where times are.
  Result<CostComparison> Of(const GraphDiff& diff, int32_t before, int32_t after) const;

 private:
  struct Side {
    const History* history;
    GraphTimes times;
  };
  RunCosts(Side before, Side after) : before_(std::move(before)), after_(std::move(after)) {}

  Side before_, after_;
};

}  // namespace strata

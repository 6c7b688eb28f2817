#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "refs/ref.h"
#include "store/node_statistics.h"

namespace strata {

/// A graph with the times of its nodes.
struct MeasuredGraph {
  std::string run;        ///< REF of the run
  std::string name;       ///< of the graph in its run
  LoadedGraph graph;      ///< the table's nodes are its nodes, by StableId
  StatisticsTable table;  ///< `steps`: calls of the graph
};

/// The graphs of a log that a trace of PyTorch's profiler ran, in order of their first calls.
///
/// What runs at a place of the generated code belongs to the nodes that the log maps that place to,
/// which share its time. Where the log has no places, operators belong to the nodes of their name,
/// in order, if a call runs as many, and kernels to all nodes that they compute. The graph of a
/// call is the one with these operators and kernels.
///
/// Errors: no such trace, or no call of a compiled graph in it that a graph of the log explains.
Result<std::vector<MeasuredGraph>> MeasureByChrome(const std::vector<History>& histories,
                                                   const std::string& chrome_path);

/// Stores the times in the trace that the graphs are of: it is written anew, aside, and renamed.
/// Errors: `path` is not a trace.
Status StoreTimes(const std::string& path, const std::vector<MeasuredGraph>& graphs);

/// The times that the runs of the trace that `ref` names hold: of `strata train --profile`, or
/// stored by StoreTimes, in this order. Errors: no trace.
Result<std::vector<StatisticsTable>> RecordedTimes(const Ref& ref);
/// The last ones of a graph. Errors: none were recorded.
Result<StatisticsTable> RecordedTimes(const Ref& ref, const Graph& graph);
/// The Error for a REF whose graph has no recorded times.
Error NoRecordedTimes(const std::string& ref);

}  // namespace strata

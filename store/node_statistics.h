#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/fingerprint.h"
#include "ir/ids.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

namespace strata {

/// What the runs of one node took and gave.
struct NodeStatistics {
  StableId node = StableId::kNone;
  int64_t calls = 0;
  int64_t time_ns = 0;  ///< of all calls together, in all steps of the table
  int64_t bytes = 0;    ///< that one call makes; of views none
  bool has_values = false;
  int64_t elements = 0;  ///< of the first result; with nan_count … mean only if has_values
  int64_t nan_count = 0, inf_count = 0;
  double min = 0, max = 0, mean = 0;  ///< of the finite elements
};

/// Of one graph, as it was executed in some steps of a run.
struct StatisticsTable {
  std::string graph;        ///< name of the graph in the run
  Fingerprint fingerprint;  ///< FingerprintScope::kComputation of what was executed
  int64_t first_step = 0, last_step = 0;
  int64_t steps = 1;                  ///< of these, those that were looked at
  int32_t rank = 0;                   ///< that executed it
  std::vector<NodeStatistics> nodes;  ///< by StableId
  /// What ran in the graph and belongs to no node that is known, in all steps of the table.
  struct Rest {
    std::string name;
    int64_t time_ns = 0;
  };
  std::vector<Rest> rest = {};
};

/// Stores a table as an artifact of kind `node_statistics`, named `<graph>.nodes.tsv`: a line for
/// each node with its columns, which other programs read as well; then, for what belongs to no
/// node, lines of `rest`, its time and its name.
Status AddNodeStatistics(TraceWriter& trace, RunId run, const StatisticsTable& table);
/// A table of a graph whose first one is of another rank: an artifact of kind `rank_statistics`,
/// named `<graph>.rank<N>.nodes.tsv`.
Status AddRankStatistics(TraceWriter& trace, RunId run, const StatisticsTable& table);

/// The tables of a run, in order of writing, one rank of each graph. Errors: an artifact that is
/// damaged.
Result<std::vector<StatisticsTable>> LoadNodeStatistics(TraceReader& trace, const StoredRun& run);
/// Those of all ranks; empty if there are none of a second one.
Result<std::vector<StatisticsTable>> LoadRankStatistics(TraceReader& trace, const StoredRun& run);

}  // namespace strata

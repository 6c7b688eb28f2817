#include "cli/passes/front.h"

#include <map>
#include <memory>
#include <vector>

#include "passes/budget/recorded_times.h"
#include "store/node_statistics.h"
#include "store/trace_reader.h"

namespace strata::cli {
namespace {

/// Microseconds in a step by name of the node, of the graph's last recorded profile. Nodes keep
/// their identity from pass to pass. Empty: `text` names a graph outside of traces, or one without
/// profile.
Result<NodeTimes> RecordedTimesOf(const Graph& graph, const std::string& text) {
  STRATA_TRY(const Ref ref, ParseRef(text));
  NodeTimes times;
  const auto trace = TraceReader::Open(ref.file);
  if (!trace) return times;
  std::map<StableId, std::string_view> names;
  for (const NodeId node : graph.nodes())
    names.emplace(graph.node(node).stable_id, graph.name(node));
  for (const StoredRun& run : (*trace)->runs()) {
    if (ref.run && static_cast<int64_t>(run.id) != *ref.run) continue;
    STRATA_TRY(const std::vector<StatisticsTable> tables, LoadNodeStatistics(**trace, run));
    for (const StatisticsTable& table : tables) {
      if (table.graph != graph.name_text()) continue;
      for (const NodeStatistics& node : table.nodes) {
        const auto name = names.find(node.node);
        if (name == names.end()) continue;
        times[std::string(name->second)] =
            static_cast<double>(node.time_ns) / 1e3 / static_cast<double>(table.steps);
      }
    }
  }
  return times;
}

}  // namespace

Result<MemoryFront> FrontOf(const Snapshot& snapshot, const std::string& ref,
                            MemoryFrontOptions options) {
  STRATA_TRY(options.times, RecordedTimesOf(snapshot.graph(), ref));
  return MemoryFrontOf(*snapshot.module, snapshot.graph_id, options);
}

}  // namespace strata::cli

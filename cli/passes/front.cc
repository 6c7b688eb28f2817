#include "cli/passes/front.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "passes/budget/budget.h"
#include "passes/budget/recorded_times.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/tags.h"
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
                            const FrontOptions& options) {
  const Graph& graph = snapshot.graph();
  for (const NodeId node : graph.nodes()) {
    if (!graph.attribute(node, kRecomputedFromAttribute).empty() || IsTransfer(graph, node)) {
      return Error("a plan was applied already: {}: node {}: name the graph before it", ref,
                   graph.name(node));
    }
  }
  STRATA_TRY(MemoryCosts costs, CostsOf(graph, options.topology));
  STRATA_TRY(const NodeTimes times, RecordedTimesOf(graph, ref));
  UseTimes(times, graph, costs);
  Budget::Options budget;
  budget.offload = options.offload;
  STRATA_TRY(std::vector<BudgetedPlan> plans,
             SearchOf(*snapshot.module, snapshot.graph_id, costs, budget).Front());
  return MemoryFront{.plans = std::move(plans), .is_profiled = !times.empty()};
}

}  // namespace strata::cli

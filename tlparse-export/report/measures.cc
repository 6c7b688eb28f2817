#include "tlparse-export/report/measures.h"

#include <algorithm>
#include <vector>

namespace strata {

namespace {

void Add(const StatisticsTable& table, Measures& measures) {
  for (NodeStatistics node : table.nodes) {
    node.time_ns /= table.steps;
    measures.insert_or_assign(static_cast<uint64_t>(node.node), node);
  }
}

}  // namespace

Result<Measures> LoadMeasures(TraceReader& trace, const StoredRun& run) {
  Measures measures;
  STRATA_TRY(const std::vector<StatisticsTable> tables, LoadNodeStatistics(trace, run));
  for (const StatisticsTable& table : tables)
    Add(table, measures);
  STRATA_TRY(const std::vector<EventRecord> events, trace.LoadEvents(run.id));
  for (const EventRecord& event : events) {
    if (event.node == StableId::kNone || event.duration_ns <= 0) continue;
    measures[static_cast<uint64_t>(event.node)].time_ns += event.duration_ns;
  }
  return measures;
}

Result<RankMeasures> LoadRankMeasures(TraceReader& trace, const StoredRun& run) {
  RankMeasures ranks;
  STRATA_TRY(const std::vector<StatisticsTable> tables, LoadRankStatistics(trace, run));
  for (const StatisticsTable& table : tables)
    Add(table, ranks[table.rank]);
  return ranks;
}

}  // namespace strata
